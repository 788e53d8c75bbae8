"""kafka-consumer-perf-test: counts what is in a topic, in Kafka's columns, and commits what it has read."""

import re

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import fetch_committed
from kaspar.records import Codec, Record, build_batch
from tests.compat.commands.catalog import CONSUMER_PERF_TEST
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.test_producer_perf_test import create_topic

DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


def _fill(place: Place, topic: str, *, partitions: int = 1) -> None:
    create_topic(place, topic, partitions=partitions)
    with Client(place.broker.bootstrap) as client:
        for partition in range(partitions):
            for codec in (Codec.NONE, Codec.LZ4):
                records = [Record(1_000_000, b"key", bytes(number)) for number in range(600)]
                client.produce(topic, partition, bytes(build_batch(records, codec=codec)))
            client.produce(topic, partition, bytes(build_batch([Record(1_000_000, None, None)])))


def _mask_measures(place: Place) -> None:
    """Of the columns only the size and the number of the records are the same in every run."""
    place.mask(
        rf"^{DATE}, {DATE}, ([\d.]+), [\d.]+, (\d+), [\d.]+, \d+, -?\d+, [\d.]+, [\d.]+$",
        r"START, END, \1, N, \2, N, N, N, N, N",
    )


def test_counts_what_is_there(places: Places) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        topic, group = place.name_of("read"), place.name_of("readers")
        _fill(place, topic, partitions=2)
        usual = (*place.servers, "--topic", topic, "--group", group)
        place.run(CONSUMER_PERF_TEST, *usual, "--num-records", "2402")
        with Client(place.broker.bootstrap) as client:
            committed = fetch_committed(client, group)
        place.see([committed[TopicPartition(topic, number)].offset for number in range(2)])
        place.run(CONSUMER_PERF_TEST, *usual, "--messages", "1", "--timeout", "500", "--hide-header")

    same_at_all(places, scenario)


def test_topics_that_match(places: Places) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        for name in ("matched-one", "matched-two"):
            _fill(place, place.name_of(name))
        pattern = place.name_of("matched-...")
        place.run(CONSUMER_PERF_TEST, *place.servers, "--include", pattern, "--num-records", "2402")

    same_at_all(places, scenario)


def test_only_what_comes_later(places: Places) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        topic = place.name_of("old")
        _fill(place, topic)
        options = ("--from-latest", "--num-records", "1", "--timeout", "300")
        place.run(CONSUMER_PERF_TEST, *place.servers, "--topic", topic, *options)

    same_at_all(places, scenario)


def test_detailed_lines(places: Places) -> None:
    """How many there are depends on the time. The last one may lack what is read after it."""
    for place in places[1:]:
        topic = place.name_of("detailed")
        _fill(place, topic)
        options = ("--num-records", "1201", "--show-detailed-stats", "--reporting-interval", "1")
        done = place.run_unseen(CONSUMER_PERF_TEST, *place.servers, "--topic", topic, *options, "--print-metrics")
        header, first, *_ = done.output.splitlines()
        assert header.startswith("time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, ")
        assert re.fullmatch(rf"{DATE}, 0, [\d.]+, [\d.]+, \d+, [\d.]+, \d+, -?\d+, [\d.]+, [\d.]+", first)
        assert re.search(r"records-consumed-total:\{client-id=perf-consumer-client\} +: 1201\.000$", done.output, re.M)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--topic", "t"),
        ("--num-records", "1"),
        ("--topic", "t", "--include", "t", "--num-records", "1"),
        ("--topic", "t", "--num-records", "1", "--messages", "1"),
        ("--topic", "t", "--num-records", "1", "--consumer.config", "a", "--command-config", "a"),
        ("--topic", "t", "--num-records", "1", "--reporting-interval", "0"),
        ("--topic", "t", "--num-records", "1", "--date-format", "QQ"),
        ("--topic", "not-there", "--num-records", "1", "--timeout", "200"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        place.run(CONSUMER_PERF_TEST, *place.servers, *words)

    same_at_all(places[:2], scenario)
