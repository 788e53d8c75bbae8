"""kafka-console-consumer: what it prints of records, and how it ends."""

import contextlib
import itertools
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kaspar.records import Record, build_batch
from tests.compat.commands.catalog import CONSOLE_CONSUMER
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.kafka import ApacheKafka
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")
TIMES_OUT = ("--timeout-ms", "300")
SERIALIZATION = "org.apache.kafka.common.serialization"
FORMATTERS = "org.apache.kafka.tools.consumer"
RECORDS = (
    Record(1000, b"k1", b"one", (("a", b"1"), ("b", None))),
    Record(2000, None, "zwölf".encode()),
    Record(3000, b"k3", None, (("c", b"3"),)),
)
LOG_PREFIX = r"^(\[\S.*?\] )?ERROR (\S+ - )?"


def client_of(place: Place) -> RawClient:
    return RawClient(int(place.broker.bootstrap.rpartition(":")[2]))


def fill(place: Place, topic: str, *records: Record, partitions: int = 1) -> str:
    """A topic with these records in its first partition."""
    name = place.name_of(topic)
    with client_of(place) as client:
        client.create_topic(name, partitions=partitions)
        if records:
            batch = bytes(build_batch(records))
            wait_until(lambda: client.produce_batch(name, batch).error_code == 0, f"{name} has a leader")
    return name


def consume(place: Place, *arguments: str) -> Done:
    """A record that does not come ends the command, not the test."""
    place.mask(LOG_PREFIX, "")
    limit = () if "--timeout-ms" in arguments else ("--timeout-ms", "30000")
    return place.run(CONSOLE_CONSUMER, *place.servers, *arguments, *limit)


def read(place: Place, topic: str, count: int, *arguments: str) -> Done:
    """The first records of partition 0. No group, so nothing waits for a rebalance."""
    where = ("--topic", topic, "--partition", "0", "--offset", "earliest")
    return consume(place, *where, "--max-messages", str(count), *arguments)


def shown(*words: str) -> list[str]:
    return [part for word in words for part in ("--formatter-property", word)]


def test_parts_of_records(places: Places) -> None:
    everything = [f"print.{name}=true" for name in ("timestamp", "key", "offset", "partition", "headers", "epoch")]

    def scenario(place: Place) -> None:
        topic = fill(place, "orders", *RECORDS)
        read(place, topic, 3, *shown(*everything, "print.delivery=true"))
        read(place, topic, 3, *shown(*everything, "key.separator=|", "headers.separator=;", "null.literal=NIL"))
        read(place, topic, 3, *shown("print.key=true", "print.value=false", "line.separator=//"))
        read(place, topic, 2, "--formatter", f"{FORMATTERS}.NoOpMessageFormatter")
        read(place, topic, 2, "--formatter", f"{FORMATTERS}.LoggingMessageFormatter")
        config = place.file("print.key=true\nprint.offset=true\n")
        read(place, topic, 1, "--formatter-config", str(config), *shown("print.offset=false"))

    same_at_all(places[:2], scenario)


def test_deserializers(places: Places) -> None:
    data = {
        "String": b"text",
        "Long": struct.pack(">q", -7),
        "Integer": struct.pack(">i", 7),
        "Short": struct.pack(">h", 7),
        "Double": struct.pack(">d", 12345678.9),
        "Float": struct.pack(">f", 0.1),
        "Boolean": b"\1",
        "UUID": b"0e5f9d5b-7c5e-4f7b-9d1c-000000000001",
        "Bytes": b"a\0\xff\\",
    }
    pairs = list(itertools.pairwise([*data, "String"]))[::2]

    def scenario(place: Place) -> None:
        topic = fill(place, "typed", *(Record(1, data[key], data[value]) for key, value in pairs))
        for offset, (key, value) in enumerate(pairs):
            words = ("print.key=true", f"key.deserializer={SERIALIZATION}.{key}Deserializer")
            value_class = ("--value-deserializer", f"{SERIALIZATION}.{value}Deserializer")
            where = ("--topic", topic, "--partition", "0", "--offset", str(offset), "--max-messages", "1")
            consume(place, *where, *shown(*words), *value_class)

    same_at_all(places[:2], scenario)


def test_records_that_cannot_be_printed(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = fill(
            place, "typed", Record(1, None, struct.pack(">q", 1)), Record(1, None, b"x"), Record(1, None, b"8 bytes!")
        )
        long = ("--value-deserializer", f"{SERIALIZATION}.LongDeserializer")
        read(place, topic, 3, *long)
        read(place, topic, 3, *long, "--skip-message-on-error")

    same_at_all(places, scenario)


def test_positions(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = fill(place, "orders", *RECORDS, partitions=2)
        where = ("--topic", topic, "--partition", "0")
        reset = ("--command-property", "auto.offset.reset=earliest")
        consume(place, *where, "--offset", "1", "--max-messages", "1")
        consume(place, *where, "--from-beginning", "--max-messages", "1")
        consume(place, *where, "--offset", "EARLIEST", "--max-messages", "3")
        consume(place, *where, *TIMES_OUT)
        consume(place, *where, "--offset", "77", "--max-messages", "3", *reset)
        consume(place, "--topic", topic, "--partition", "1", "--from-beginning", *TIMES_OUT)
        consume(place, *where, "--max-messages", "0")

    same_at_all(places, scenario)


def test_groups_and_patterns(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic, group = fill(place, "orders", *RECORDS), place.name_of("shop")
        consume(place, "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "2")
        consume(place, "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "1")
        consume(place, "--topic", topic, "--from-beginning", "--max-messages", "1")
        consume(place, "--include", f"o.*{topic[1:]}|zork", "--from-beginning", "--max-messages", "1")
        config = place.file(f"group.id={place.name_of('other')}\n")
        newest = ("--command-property", "group.protocol=consumer")
        consume(
            place, "--topic", topic, "--command-config", str(config), "--from-beginning", "--max-messages", "3", *newest
        )

    same_at_all(places, scenario)


def test_deprecated_options(places: Places) -> None:
    def scenario(place: Place) -> None:
        config = place.file("client.id=someone\n")
        old = (
            "--consumer.config",
            str(config),
            "--consumer-property",
            "fetch.min.bytes=1",
            "--property",
            "print.key=true",
        )
        read(place, fill(place, "orders", *RECORDS), 1, *old, "--enable-systest-events")

    same_at_all(places, scenario)


@contextlib.contextmanager
def open_transaction(place: Place, topic: str) -> Iterator[None]:
    """A record that is neither committed nor aborted yet."""
    settings = {"bootstrap.servers": place.broker.bootstrap, "transactional.id": place.name_of("writer")}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"undecided")
    producer.flush(30)
    try:
        yield
    finally:
        producer.abort_transaction(30)


def test_isolation_levels(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = fill(place, "orders", *RECORDS[:1])
        with open_transaction(place, topic):
            read(place, topic, 2)
            read(place, topic, 2, "--isolation-level", "read_committed", "--timeout-ms", "1000")
            read(place, topic, 1, "--command-property", "isolation.level=read_committed")

    same_at_all(places, scenario)


def test_topics_that_are_not_there(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(LOG_PREFIX, "")
        place.mask(r"^\[Consumer .*\] Metadata response reported invalid topics.*\n", "")
        consume(place, "--topic", "in valid", "--timeout-ms", "5000")
        missing = ("--command-property", "allow.auto.create.topics=false")
        consume(place, "--topic", place.name_of("missing"), *TIMES_OUT, *missing)
        consume(place, "--topic", place.name_of("missing"), "--partition", "0", *TIMES_OUT, *missing)
        consume(place, "--include", place.name_of("missing"), *TIMES_OUT)

    same_at_all(places, scenario)


def test_no_broker(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(LOG_PREFIX, "")
        place.run(CONSOLE_CONSUMER, *ADDRESS, "--topic", "x", *TIMES_OUT)

    same_at_all(places[:2], scenario)


WRONG = [
    ADDRESS,
    ("--topic", "x"),
    (*ADDRESS, "--topic", "x", "--include", "y"),
    (*ADDRESS, "--include", "x", "--partition", "0"),
    (*ADDRESS, "--topic", "x", "--offset", "0"),
    (*ADDRESS, "--topic", "x", "--partition", "0", "--offset", "0", "--from-beginning"),
    (*ADDRESS, "--topic", "x", "--partition", "0", "--offset", "-3"),
    (*ADDRESS, "--topic", "x", "--partition", "0", "--offset", "soon"),
    (*ADDRESS, "--topic", "x", "--partition", "0", "--group", "y"),
    (*ADDRESS, "--topic", "x", "--group", "a", "--command-property", "group.id=b"),
    (*ADDRESS, "--topic", "x", "--from-beginning", "--command-property", "auto.offset.reset=latest"),
    (*ADDRESS, "--topic", "x", "--partition", "many"),
    (*ADDRESS, "--topic", "x", "--isolation-level", "zork"),
    (*ADDRESS, "--topic", "x", "--command-property", "fetch.min.bytes=many"),
    (*ADDRESS, "--topic", "x", "--property", "a=b", "--formatter-property", "a=b"),
    (*ADDRESS, "--topic", "x", "--consumer-property", "a=b", "--command-property", "a=b"),
    (*ADDRESS, "--topic", "x", "--consumer.config", "/dev/null", "--command-config", "/dev/null"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_options(arguments: tuple[str, ...], places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(LOG_PREFIX, "")
        place.run(CONSOLE_CONSUMER, *arguments)

    same_at_all(places[:2], scenario)


def test_classes_of_others_are_refused(places: Places) -> None:
    ours = places[1]
    done = ours.run(CONSOLE_CONSUMER, *ADDRESS, "--topic", "x", "--formatter", "com.example.Formatter")
    assert done.code == 1
    assert "Java classes cannot be loaded" in done.errors


def test_internal_topics_are_printed_as_by_kafka(
    places: Places, apache_kafka: ApacheKafka, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    """Both commands read the same logs, on each of the brokers."""
    theirs_on_kaspar, ours_on_kaspar, ours_on_kafka = places
    theirs_on_kafka = Place("Kafka's command on Apache Kafka", apache_kafka, tmp_path, kafka_tools)
    for theirs, ours in ((theirs_on_kaspar, ours_on_kaspar), (theirs_on_kafka, ours_on_kafka)):
        topic = fill(ours, "orders", *RECORDS)
        with open_transaction(ours, topic):
            pass
        for protocol in ("classic", "consumer"):
            group = ("--group", ours.name_of(protocol), "--command-property", f"group.protocol={protocol}")
            consume(ours, "--topic", topic, *group, "--from-beginning", "--max-messages", "3")
        for name, internal in (
            ("Offsets", "__consumer_offsets"),
            ("GroupMetadata", "__consumer_offsets"),
            ("TransactionLog", "__transaction_state"),
        ):
            with client_of(ours) as client:
                count = len(list(client.read_all(internal)))
            where = ("--topic", internal, "--partition", "0", "--from-beginning", "--max-messages", str(count))
            arguments = (*where, "--formatter", f"{FORMATTERS}.{name}MessageFormatter")
            expected, found = (
                place.run_unseen(CONSOLE_CONSUMER, *place.servers, *arguments) for place in (theirs, ours)
            )
            assert ours.name_of("writer" if name == "TransactionLog" else "classic") in found.output
            assert found.output == expected.output
