"""kafka-console-producer: what it prints, and the records that it leaves behind."""

from typing import Any

import pytest

from tests.compat.commands.catalog import CONSOLE_PRODUCER
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1", "--topic", "x")
_LOG_PREFIX = r"^(\[\S.*?\] )?ERROR (\S+ - )?"


def produce(place: Place, *arguments: str, lines: bytes, topic: str = "lines") -> None:
    """Runs the command, and looks at what the topic has then."""
    place.mask(_LOG_PREFIX, "")
    name = place.name_of(topic)
    place.run(CONSOLE_PRODUCER, *place.servers, "--topic", name, *arguments, standard_input=lines)
    place.see(records_of(place, name))


def records_of(place: Place, topic: str) -> list[Any]:
    with RawClient(int(place.broker.bootstrap.rpartition(":")[2])) as client:
        found = list(client.read_all(topic)) if topic in client.topics() else []
    return [[str(record.key), str(record.value), str(record.headers)] for record in found]


def properties(*words: str) -> list[str]:
    return [part for word in words for part in ("--reader-property", word)]


QUICK = ("--timeout", "5")


def test_lines_become_values(places: Places) -> None:
    same_at_all(places, lambda place: produce(place, *QUICK, lines="one\r\ntwo\rthree\n\nfünf".encode()))


def test_keys_and_headers(places: Places) -> None:
    def scenario(place: Place) -> None:
        arguments = properties("parse.key=true", "parse.headers=true", "key.separator=|", "null.marker=NULL")
        lines = b"h1:v1,h2:v2,\tkey|value\nh:NULL\tNULL|NULL\nNULL\t|empty\na:b:c\tk|v|w\n"
        produce(place, *QUICK, *arguments, lines=lines)
        produce(place, *QUICK, *properties("parse.key=true"), lines=b"k\tv\n", topic="tabs")

    same_at_all(places, scenario)


def test_headers_with_other_separators(places: Places) -> None:
    def scenario(place: Place) -> None:
        file = place.file(
            "parse.headers=true\nheaders.delimiter=;\nheaders.separator=[&+]\nheaders.key.separator=\\=\n"
        )
        produce(place, *QUICK, "--reader-config", str(file), lines=b"a=1&b=2+c=3;value\n")

    same_at_all(places, scenario)


def test_lines_that_cannot_be_parsed(places: Places) -> None:
    def scenario(place: Place) -> None:
        for words, lines in (
            (("parse.key=true",), b"k\tv\nno key\nk\tw\n"),
            (("parse.headers=true",), b"h:v\tvalue\nno headers\n"),
            (("parse.headers=true",), b"pair\tvalue\n"),
            (("parse.headers=true", "null.marker=NULL"), b"NULL:v\tvalue\n"),
            (("headers.delimiter=,",), b"x\n"),
            (("null.marker=|", "key.separator=|"), b"x\n"),
        ):
            arguments = ("--topic", place.name_of("lines"), *QUICK, *properties(*words))
            place.run(CONSOLE_PRODUCER, *place.servers, *arguments, standard_input=lines)
        place.see(records_of(place, place.name_of("lines")))

    same_at_all(places, scenario)


def test_errors_can_be_ignored(places: Places) -> None:
    def scenario(place: Place) -> None:
        words = properties("parse.key=true", "parse.headers=true", "ignore.error=true")
        produce(place, *QUICK, *words, lines=b"h\tk\tv\nvalue\n")

    same_at_all(places, scenario)


def test_deprecated_options(places: Places) -> None:
    def scenario(place: Place) -> None:
        config = place.file("linger.ms=1\n")
        old = ("--producer.config", str(config), "--producer-property", "acks=1", "--property", "parse.key=true")
        produce(place, *old, "--max-partition-memory-bytes", "1000", lines=b"a\tb\n")

    same_at_all(places, scenario)


def test_compression(places: Places) -> None:
    _, ours, theirs = places
    for place in (ours, theirs):
        for codec in ((), ("gzip",), ("snappy",), ("lz4",), ("zstd",)):
            arguments = ("--topic", place.name_of("lines"), *QUICK, "--compression-codec", *codec)
            assert place.run(CONSOLE_PRODUCER, *place.servers, *arguments, standard_input=b"x\n" * 10).code == 0
        assert len(records_of(place, place.name_of("lines"))) == 50


def test_tuning_and_sync(places: Places) -> None:
    def scenario(place: Place) -> None:
        sizes = ("--batch-size", "100", "--max-memory-bytes", "100000", "--socket-buffer-size", "50000")
        times = ("--request-timeout-ms", "3000", "--retry-backoff-ms", "10", "--metadata-expiry-ms", "10000")
        others = ("--message-send-max-retries", "1", "--max-block-ms", "10000", "--request-required-acks", "1")
        produce(place, "--sync", *QUICK, *sizes, *times, *others, lines=b"a\nb\n")

    same_at_all(places, scenario)


def test_record_that_is_too_large(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"larger than \d+", "larger than MAX")  # librdkafka accepts no limit below 1000
        limit = ("--command-property", "max.request.size=1000", *QUICK)
        produce(place, *limit, lines=b"x" * 2000 + b"\nsmall\n")
        produce(place, *limit, "--sync", lines=b"x" * 2000 + b"\nsmall\n")

    same_at_all(places, scenario)


def test_record_that_the_broker_refuses(places: Places) -> None:
    def scenario(place: Place) -> None:
        # librdkafka passes on the error, not what the broker says about it.
        place.mask(r"^(The record batch size in the append|The request included a message larger) .*$", "Too large.")
        with RawClient(int(place.broker.bootstrap.rpartition(":")[2])) as client:
            client.create_topic(place.name_of("lines"), configs={"max.message.bytes": "200"})
        produce(place, *QUICK, "--sync", lines=b"small\n" + b"x" * 500 + b"\n")
        produce(place, *QUICK, lines=b"x" * 500 + b"\n")

    same_at_all(places, scenario)


def test_topic_that_cannot_exist(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(_LOG_PREFIX, "")
        place.mask(r"^\[Producer .*\] Metadata response reported invalid topics.*\n", "")
        for more in ((), ("--sync",)):
            place.run(CONSOLE_PRODUCER, *place.servers, "--topic", "in valid", *more, standard_input=b"one\n")

    same_at_all(places, scenario)


@pytest.mark.parametrize("sync", [(), ("--sync",)], ids=["async", "sync"])
def test_no_broker(places: Places, sync: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        place.mask(_LOG_PREFIX, "")
        place.run(CONSOLE_PRODUCER, *ADDRESS, "--max-block-ms", "300", *sync, standard_input=b"one\n")

    same_at_all(places, scenario)


WRONG = [
    ("--topic", "x"),
    ADDRESS[:2],
    ("--bootstrap-server", "nonsense", "--topic", "x"),
    (*ADDRESS, "--max-block-ms", "soon"),
    (*ADDRESS, "--topic"),
    (*ADDRESS, "--compression-codec", "zork"),
    (*ADDRESS, "--request-required-acks", "7"),
    (*ADDRESS, "--command-property", "linger.ms=soon", "--timeout", "-1"),
    (*ADDRESS, "--command-property", "enable.idempotence=true", "--request-required-acks", "0"),
    (*ADDRESS, "--property", "a=b", "--reader-property", "a=b"),
    (*ADDRESS, "--producer-property", "a=b", "--command-property", "a=b"),
    (*ADDRESS, "--producer.config", "x", "--command-config", "x"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_options(arguments: tuple[str, ...], places: Places) -> None:
    same_at_all(places[:2], lambda place: place.see(place.run(CONSOLE_PRODUCER, *arguments).code))


def test_line_readers_of_others_are_refused(places: Places) -> None:
    ours = places[1]
    done = ours.run(CONSOLE_PRODUCER, *ADDRESS, "--line-reader", "com.example.Reader", standard_input=b"x")
    assert done.code == 1
    assert "Java classes cannot be loaded" in done.errors


def test_settings_without_effect_are_named(places: Places) -> None:
    ours = places[1]
    arguments = ("--topic", ours.name_of("t"), "--command-property", "interceptor.classes=com.example.A")
    done = ours.run(CONSOLE_PRODUCER, *ours.servers, *arguments)
    assert (done.code, done.output) == (0, "")
    assert done.errors.startswith("WARN interceptor.classes has no effect")
