"""server.properties and --override."""

from pathlib import Path

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.config import load_settings, read_properties, warnings_about


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb = 2\nc:3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# a=1\n! b=2\n   # c=3\n\n \t\n", {}),
        ("a=1 \\\n   2\\\n3", {"a": "1 23"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\=b\\:c\\ d=e=f:g", {"a=b:c d": "e=f:g"}),
        ("a=x\\ty\\nz\\\\\\q", {"a": "x\ty\nz\\q"}),
        ("a=\\u00e4\\u20AC", {"a": "ä€"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a\nb=\nc:", {"a": "", "b": "", "c": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("  a  =  1  ", {"a": "1  "}),
        ("a==1", {"a": "=1"}),
        ("=1", {"": "1"}),
        ("a=1 # no comment here", {"a": "1 # no comment here"}),
    ],
)
def test_java_properties(text: str, values: dict[str, str]) -> None:
    assert read_properties(text) == values


def test_a_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="without four hexadecimal digits"):
        read_properties("a=\\u12")


def test_overrides_come_after_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.dirs=/data/ä\n", encoding="utf-8")
    assert load_settings(file, ["num.partitions = 5", "broker.rack=a=b"]) == {
        "num.partitions": "5",
        "log.dirs": "/data/ä",
        "broker.rack": "a=b",
    }


def test_a_file_that_cannot_be_read_stops_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"missing\.properties cannot be read: No such file"):
        load_settings(tmp_path / "missing.properties")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSetting, match="is not a text file in UTF-8"):
        load_settings(tmp_path / "binary")
    with pytest.raises(InvalidSetting, match="is not of the form key=value"):
        load_settings(None, ["num.partitions"])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "log.segmet.bytes",
            "log.segmet.bytes is not a known setting and has no effect. Did you mean log.segment.bytes?",
        ),
        ("qqq", "qqq is not a known setting and has no effect."),
        ("zookeeper.sync.time.ms", "zookeeper.sync.time.ms has no effect: it belongs to Kafka's ZooKeeper mode"),
        ("num.io.threads", "num.io.threads has no effect: A broker is one process with one event loop"),
        ("listener.name.x.ssl.provider", "listener.name.x.ssl.provider has no effect: TLS is OpenSSL's"),
        ("listener.name.x.gssapi.sasl.login.class", "listener.name.x.gssapi.sasl.login.class has no effect: Java"),
    ],
)
def test_settings_without_effect_are_warned_about(name: str, sentence: str) -> None:
    (warning,) = warnings_about({name: "1"})
    assert warning.startswith(sentence)


def test_settings_with_effect_are_not_warned_about() -> None:
    honoured = {
        "node.id": "1",
        "listeners": "PLAINTEXT://:9092",
        "log.dirs": "/a",
        "zookeeper.connect": "localhost",
        "listener.name.x.ssl.keystore.type": "PEM",
        "listener.name.x.scram-sha-256.sasl.jaas.config": "text",
    }
    assert warnings_about(honoured) == []
