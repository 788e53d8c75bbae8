"""The command line of a ZooKeeper server, and the sentences when it cannot run. Processes are in tests/integration."""

from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.cli import main as cli
from kaspar.spark.running.java import Java
from kaspar.zookeeper import State, ZooKeeperServer, state_of, write_config
from kaspar.zookeeper.server import command
from tests.peers.wire import free_port

JAVA = Java(Path("/java"), 17)


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert cli.main(["zookeeper", *map(str, arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("kaspar: ")
    assert len(error.splitlines()) == 1
    return error


def test_command_bounds_the_heap_and_opens_no_other_port(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    line = command(JAVA, config, "256m", ["-XX:+UseSerialGC"])
    assert line[0] == "/java/bin/java"
    assert line[-1] == str(config.file)
    assert {"-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.admin.enableServer=false"} < set(line)
    jars = line[line.index("-cp") + 1].split(":")
    assert any(Path(jar).name.startswith("zookeeper-3") for jar in jars)
    assert all(Path(jar).exists() for jar in jars)


def test_command_has_what_tls_and_sasl_need_and_the_file_may_say_otherwise(tmp_path: Path) -> None:
    plain = " ".join(command(JAVA, write_config(tmp_path)))
    assert "serverCnxnFactory" not in plain
    assert "authProvider" not in plain
    config = write_config(tmp_path, more={"secureClientPort": "2282"})
    line = command(JAVA, config, jaas_file=tmp_path / "users.conf")
    assert "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory" in line
    assert f"-Djava.security.auth.login.config={tmp_path}/users.conf" in line
    assert any(word.startswith("-Dzookeeper.authProvider.sasl=") for word in line)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "users.conf cannot be read: No such file"),
        ("nonsense", "users.conf is not a JAAS file: a section of a JAAS file has the form"),
        ("Client { a.Module required; };", "users.conf has no section Server, which lists the users"),
    ],
)
def test_jaas_file_that_cannot_work_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    file = tmp_path / "users.conf"
    if text is not None:
        file.write_text(text)
    assert sentence in _refusal(capsys, "--dir", tmp_path / "zk", "--jaas", file)


def test_heap_that_is_no_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KasparError, match="a size such as 256m or 1g, not 'much'"):
        command(JAVA, write_config(tmp_path), "much")


def test_server_that_is_not_started_is_down(tmp_path: Path) -> None:
    server = ZooKeeperServer(write_config(tmp_path, client_port=free_port()))
    assert server.state is State.DOWN
    assert state_of("127.0.0.1", free_port()) is State.DOWN
    server.stop()
    server.kill()


def test_missing_java_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "install Java 17 or newer" in _refusal(capsys, "--dir", tmp_path)


def test_missing_pyspark_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaspar.zookeeper.server.find_java", lambda **_: JAVA)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = _refusal(capsys, "--dir", tmp_path)
    assert "PySpark, which brings ZooKeeper, is not installed: pip install 'kaspar[spark]'" in error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--port", "0"), "the port must be between 1 and 65535, not 0"),
        (("--id", "1"), "--id requires a FILE with the members"),
        (("nowhere.cfg",), "nowhere.cfg cannot be read"),
    ],
)
def test_wrong_arguments_are_a_sentence(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in _refusal(capsys, *arguments, "--dir", tmp_path)


def test_folder_that_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be used" in _refusal(capsys, "--dir", tmp_path / "file")
