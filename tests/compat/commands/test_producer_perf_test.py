"""kafka-producer-perf-test: reports in Kafka's lines, and sends exactly the records that it was asked for."""

import itertools

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import list_offsets
from kaspar.records import iter_records
from tests.compat.commands.catalog import PRODUCER_PERF_TEST
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.observed import wait_until

UNLIMITED = ("--throughput", "-1")


def _mask_measures(place: Place) -> None:
    for pattern in (r"[\d.]+(?= records/sec)", r"[\d.]+(?= MB/sec)", r"[\d.]+(?= ms )", r"(?<=: )[\d.]+$"):
        place.mask(pattern, "N")


def create_topic(place: Place, topic: str, *, partitions: int = 1) -> None:
    with Admin(place.broker.bootstrap) as admin:
        create_topics(admin, [NewTopic(topic, partitions, 1)])
    wait_until(lambda: place.broker.lead(topic, range(partitions)), f"{topic} has leaders")


def _end_offset(place: Place, topic: str) -> int:
    with Client(place.broker.bootstrap) as client:
        return list_offsets(client, {TopicPartition(topic, 0): LATEST_TIMESTAMP})[TopicPartition(topic, 0)].offset


def _values(place: Place, topic: str) -> list[bytes]:
    with Client(place.broker.bootstrap) as client:
        fetched = client.fetch(topic, 0, 0)
        assert fetched.records is not None
        return [record.value or b"" for record in iter_records(fetched.records)]


@pytest.mark.parametrize(
    "options",
    [
        ("--record-size", "100"),
        ("--payload-monotonic", "--command-property", "compression.type=lz4", "linger.ms=0"),
        ("--record-size", "100", "--producer-props", "acks=1", "batch.size=2000"),
        ("--record-size", "10", "--command-property", "acks=0", "enable.idempotence=false"),
        ("--record-size", "10", "--warmup-records", "1500", "--command-property", "compression.type=zstd"),
        ("--record-size", "20000", "--num-records", "30"),
    ],
    ids=" ".join,
)
def test_as_many_records_as_asked_for(places: Places, options: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        topic = place.name_of("load")
        create_topic(place, topic)
        place.run(PRODUCER_PERF_TEST, *place.servers, "--topic", topic, "--num-records", "2000", *UNLIMITED, *options)
        place.see(_end_offset(place, topic))

    same_at_all(places, scenario)


def test_values_of_a_file(places: Places) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        file = place.file("one;two;three;", "values")
        topic = place.name_of("load")
        count = ("--num-records", "200")
        options = ("--payload-file", file, "--payload-delimiter", ";")
        place.run(PRODUCER_PERF_TEST, *place.servers, "--topic", topic, *count, *UNLIMITED, *options)
        place.see(sorted(set(_values(place, topic))))

    same_at_all(places, scenario)


def test_numbers_in_order(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = place.name_of("load")
        options = ("--payload-monotonic", "--num-records", "200", "--throughput", "4000")
        place.run_unseen(PRODUCER_PERF_TEST, *place.servers, "--topic", topic, *options)
        place.see(_values(place, topic) == [str(number).encode() for number in range(200)])

    same_at_all(places, scenario)


def test_transactions(places: Places) -> None:
    """The offsets differ, since each transaction has a marker: it depends on the time how many there are."""

    def scenario(place: Place) -> None:
        _mask_measures(place)
        topic, name = place.name_of("load"), place.name_of("transactions")
        options = ("--record-size", "10", "--num-records", "400", "--throughput", "2000")
        transactions = ("--transactional-id", name, "--transaction-duration-ms", "50")
        place.run(PRODUCER_PERF_TEST, *place.servers, "--topic", topic, *options, *transactions)
        place.see(_end_offset(place, topic) > 401)
        place.see(len(_values(place, topic)) == _end_offset(place, topic))

    same_at_all(places, scenario)


def test_records_are_spread_over_partitions(places: Places) -> None:
    for place in places[1:]:
        topic = place.name_of("spread")
        create_topic(place, topic, partitions=4)
        options = ("--record-size", "1000", "--num-records", "4000")
        place.run_unseen(PRODUCER_PERF_TEST, *place.servers, "--topic", topic, *options, *UNLIMITED)
        with Client(place.broker.bootstrap) as client:
            partitions = {TopicPartition(topic, number): LATEST_TIMESTAMP for number in range(4)}
            counts = [each.offset for each in list_offsets(client, partitions).values()]
        assert sum(counts) == 4000
        assert min(counts) > 250


def test_throughput_is_kept(places: Places) -> None:
    """400 records at 1000 per second: the first and the last are 399 ms apart, by their own timestamps."""
    for place in places[1:]:
        topic = place.name_of("even")
        options = ("--record-size", "10", "--num-records", "400", "--throughput", "1000")
        place.run_unseen(PRODUCER_PERF_TEST, *place.servers, "--topic", topic, *options)
        with Client(place.broker.bootstrap) as client:
            times = [record.timestamp for record in iter_records(client.fetch(topic, 0, 0).records or b"")]
        assert 398 <= times[-1] - times[0] <= 400
        assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 2


@pytest.mark.parametrize(
    "words",
    [
        ("--num-records", "0"),
        ("--record-size", "0"),
        ("--record-size", "ten"),
        ("--throughput", "fast"),
        ("--payload-monotonic",),
        ("--warmup-records", "10"),
        ("--transaction-duration-ms", "0"),
        ("--reporting-interval", "0"),
        ("--command-property", "a=b", "--producer-props", "a=b"),
        ("--command-property", "a"),
        ("--payload-file", "/does/not/exist"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    usual = {"--topic": "t", "--num-records": "10", "--record-size": "10", "--throughput": "-1"}
    if words[0] == "--payload-file":
        del usual["--record-size"]
    for name in words:
        usual.pop(name, None)
    given = [word for pair in usual.items() for word in pair]

    def scenario(place: Place) -> None:
        place.mask(r"\A(.|\n)*?(?=kafka-producer-perf-test: error: )", "")
        servers = () if "--producer-props" in words else place.servers
        done = place.run_unseen(PRODUCER_PERF_TEST, *servers, *given, *words)
        place.see((done.code, done.output))
        place.see(
            " ".join(done.errors.replace('Exception in thread "main" java.lang.IllegalArgumentException: ', "").split())
        )

    same_at_all(places[:2], scenario)
