"""kafka-get-offsets: what it prints, beside Kafka's."""

import pytest

from kaspar.client import Client
from kaspar.records import Record, build_batch
from tests.compat.commands.catalog import GET_OFFSETS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.tools.comparing import run_ours, sentences
from tests.peers.kafka_tools import KafkaTools
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")
T0_MS = 1_700_000_000_000


def _topic(place: Place, what: str = "log") -> str:
    """Three partitions: five records a second apart, two, none."""
    topic = place.name_of(what)
    with RawClient(place.broker.port) as client:
        assert client.create_topic(topic, partitions=3) == 0
    wait_until(lambda: place.broker.lead(topic, range(3)), f"{topic} is led")
    with Client(place.broker.bootstrap) as client:
        for partition, records in ((0, 5), (1, 2)):
            batch = build_batch([Record(T0_MS + 1000 * number, None, b"value") for number in range(records)])
            client.produce(topic, partition, bytes(batch))
    return topic


def test_every_time(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = _topic(place)
        place.run(GET_OFFSETS, *place.servers, "--topic", topic)
        for time in (
            *("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload"),
            *("-1", "-2", "-3", "-4", "-5", "-6", "-7"),
            *("0", str(T0_MS + 1), str(T0_MS + 60_000), "yesterday", "LATEST"),
        ):
            place.run(GET_OFFSETS, *place.servers, "--topic", topic, "--time", time, in_order=time != "-7")

    same_at_all(places, scenario)


def test_every_filter(places: Places) -> None:
    def scenario(place: Place) -> None:
        first, second = _topic(place, "alpha"), _topic(place, "beta")
        for partitions in ("0", "0,2", "7", "x", "0-1", ""):
            place.run(GET_OFFSETS, *place.servers, "--topic", first, "--partitions", partitions)
        for topic in (f"{first},{second}", f"{first}|{second}", "nothing", "", "["):
            place.run(GET_OFFSETS, *place.servers, "--topic", topic)
        for rules in (
            *(first, f"{first}:1", f"{first}:1-2", f"{first}:1-", f"{first}:-1", f"{first}:-", f"{first}:"),
            *(f"{first}:0,{second}:2", f"{first}:x", f"{first}:0:1", "nothing", "nothing:0", "["),
        ):
            place.run(GET_OFFSETS, *place.servers, "--topic-partitions", rules)

    same_at_all(places, scenario)


def test_internal_topics_can_be_left_out(places: Places) -> None:
    for place in places:
        topic = _topic(place)
        done = place.run_unseen(GET_OFFSETS, *place.servers, "--exclude-internal-topics")
        assert f"{topic}:0:5" in done.output
        assert "__" not in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", "x"),
        ("--bootstrap-server", "nonsense", "--topic", "x"),
        (*ADDRESS, "--topic-partitions", "x", "--topic", "x"),
        (*ADDRESS, "--topic-partitions", "x", "--partitions", "0"),
        (*ADDRESS, "--time"),
    ],
    ids=" ".join,
)
def test_wrong_options(arguments: tuple[str, ...], kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(GET_OFFSETS.kafka_class, *arguments), run_ours(GET_OFFSETS, *arguments)
    assert (ours.code, ours.output, sentences(ours.errors)) == (theirs.code, theirs.output, sentences(theirs.errors))


def test_no_broker_is_a_sentence_after_the_timeout(places: Places) -> None:
    def scenario(place: Place) -> None:
        timeouts = place.file("default.api.timeout.ms=700\nrequest.timeout.ms=300\n")
        place.run(GET_OFFSETS, *ADDRESS, "--command-config", timeouts)

    same_at_all(places, scenario)
