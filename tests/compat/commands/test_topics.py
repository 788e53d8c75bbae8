"""kafka-topics: what it prints and does, beside Kafka's."""

import re

import pytest

from tests.compat.commands.catalog import TOPICS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.tools.comparing import run_ours, sentences
from tests.peers.kafka_tools import KafkaTools
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")


def _topics(place: Place, *arguments: str) -> str:
    """Without a setting that brokers of the two kinds list differently."""
    place.mask(r"min\.insync\.replicas=1,?", "")
    return place.run(TOPICS, *place.servers, *arguments).output


def _create(place: Place, topic: str, *arguments: str, partitions: int = 1) -> None:
    _topics(place, "--create", "--topic", topic, *arguments)
    _wait_for(place, topic, partitions)


def _wait_for(place: Place, topic: str, partitions: int) -> None:
    """A broker learns of new partitions a moment after the command has ended."""
    wait_until(lambda: place.broker.lead(topic, range(partitions)), f"{topic} has {partitions} partitions")


def _wait_for_deletion(place: Place, *topics: str) -> None:
    with RawClient(place.broker.port) as client:
        wait_until(lambda: not {*topics} & {*client.topics()}, f"{topics} are deleted")


def test_topic_is_created_described_altered_and_deleted(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = place.name_of("orders")
        _create(place, topic, "--partitions", "2", "--config", "retention.ms=1000", partitions=2)
        _topics(place, "--create", "--topic", topic)
        _topics(place, "--create", "--topic", topic, "--if-not-exists")
        _topics(place, "--describe", "--topic", topic)
        _topics(place, "--alter", "--topic", topic, "--partitions", "3")
        _wait_for(place, topic, 3)
        _topics(place, "--alter", "--topic", topic, "--partitions", "2")
        _topics(place, "--alter", "--topic", topic, "--partitions", "3")
        for limit in ("1", "0", "x"):
            _topics(place, "--describe", "--topic", topic, "--partition-size-limit-per-response", limit)
        _topics(place, "--list", "--topic", topic)
        _topics(place, "--delete", "--topic", topic)
        _wait_for_deletion(place, topic)
        _topics(place, "--list", "--topic", topic)
        _topics(place, "--delete", "--topic", topic)

    same_at_all(places, scenario)


def test_replicas_are_assigned(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = place.name_of("assigned")
        _create(place, topic, "--replica-assignment", "1,1", partitions=2)
        _topics(place, "--describe", "--topic", topic)
        _topics(place, "--alter", "--topic", topic, "--partitions", "4", "--replica-assignment", "1,1,1,1")
        _wait_for(place, topic, 4)
        _topics(place, "--alter", "--topic", topic, "--partitions", "6", "--replica-assignment", "1,1,1,1,1")
        _topics(place, "--describe", "--topic", topic)
        for wrong in ("1:1", "1:2,3", "1:x", "9"):
            _topics(place, "--create", "--topic", place.name_of("wrong"), "--replica-assignment", wrong)

    same_at_all(places, scenario)


def test_topics_are_chosen_by_include_lists(places: Places) -> None:
    def scenario(place: Place) -> None:
        first, second = place.name_of("alpha"), place.name_of("beta")
        for topic in (first, second):
            _create(place, topic)
        suffix = first.removeprefix("alpha")
        for pattern in (
            first,
            f"{first},{second}",
            f" '{first} , beta.*{suffix}' ",
            f".*{suffix}",
            f"[ab].*{suffix}",
            "",
            "[",
        ):
            _topics(place, "--list", "--topic", pattern)
        _topics(place, "--describe", "--topic", f"{first},nothing")
        _topics(place, "--describe", "--topics-with-overrides", "--topic", first)
        _topics(place, "--alter", "--topic", f"{first},{second}", "--partitions", "2")
        _wait_for(place, second, 2)
        _topics(place, "--delete", "--topic", f".*{suffix}")
        _wait_for_deletion(place, first, second)
        _topics(place, "--list", "--topic", f".*{suffix}")

    same_at_all(places, scenario)


def test_topic_is_described_by_its_id(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = place.name_of("known")
        _create(place, topic)
        found = re.search(r"TopicId: (\S+)", _topics(place, "--describe", "--topic", topic))
        assert found is not None
        _topics(place, "--describe", "--topic-id", found[1])
        _topics(place, "--describe", "--topic-id", found[1], "--topic", "other", "--if-exists")
        _topics(place, "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAA", "--topic", topic)
        for unknown in ("AAAAAAAAAAAAAAAAAAAAAQ", "zork", "A" * 30):
            _topics(place, "--describe", "--topic-id", unknown)
        _topics(place, "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--if-exists")

    same_at_all(places, scenario)


def test_partitions_are_filtered(places: Places) -> None:
    def scenario(place: Place) -> None:
        at_min, above = place.name_of("at-min"), place.name_of("under-min")
        _create(place, at_min, "--config", "min.insync.replicas=1")
        _create(place, above, "--config", "min.insync.replicas=2")
        for option in ("under-replicated", "at-min-isr", "under-min-isr", "unavailable"):
            _topics(place, "--describe", "--topic", f"{at_min},{above}", f"--{option}-partitions")

    same_at_all(places, scenario)


def test_what_cannot_be_created(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = place.name_of("refused")
        for wrong in (
            ("--partitions", "0"),
            ("--partitions", "x"),
            ("--replication-factor", "0"),
            ("--replication-factor", "40000"),
            ("--replication-factor", "5"),
            ("--config", "x"),
            ("--config", "x=y"),
            ("--config", "=y"),
            ("--config", "retention.ms=x"),
            ("--config", "retention.ms=-5"),
            ("--config", "a=b=c"),
        ):
            _topics(place, "--create", "--topic", topic, *wrong)
        for name in ("with blanks", "..", "", "x" * 250):
            _topics(place, "--create", "--topic", name)
        dotted = place.name_of("with.dot")
        _create(place, dotted)
        _topics(place, "--create", "--topic", dotted.replace(".", "_"))

    same_at_all(places, scenario)


def test_topics_that_do_not_exist(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = place.name_of("missing")
        for action in (("--describe",), ("--delete",), ("--alter", "--partitions", "2")):
            _topics(place, *action, "--topic", topic)
            _topics(place, *action, "--topic", topic, "--if-exists")

    same_at_all(places, scenario)


WRONG_OPTIONS = [
    ("--list",),
    (*ADDRESS, "--topic", "x"),
    (*ADDRESS, "--list", "--create"),
    (*ADDRESS, "--create"),
    (*ADDRESS, "--delete"),
    (*ADDRESS, "--alter", "--topic", "x"),
    (*ADDRESS, "--alter", "--topic", "x", "--partitions", "2", "--replication-factor", "1"),
    (*ADDRESS, "--describe", "--if-exists"),
    *((*ADDRESS, "--list", option, "1") for option in ("--config", "--partitions", "--replica-assignment")),
    (*ADDRESS, "--describe", "--replication-factor", "1"),
    (*ADDRESS, "--create", "--topic", "x", "--replica-assignment", "1", "--partitions", "1"),
    (*ADDRESS, "--create", "--topic", "x", "--replica-assignment", "1", "--replication-factor", "1"),
    (*ADDRESS, "--create", "--topic", "x", "--if-exists"),
    (*ADDRESS, "--describe", "--if-not-exists"),
    (*ADDRESS, "--delete", "--topic", "x", "--exclude-internal"),
    *(
        (*ADDRESS, *action, f"--{option}-partitions")
        for option in ("under-replicated", "at-min-isr", "under-min-isr", "unavailable")
        for action in (("--list",), ("--describe", "--topics-with-overrides"))
    ),
    (*ADDRESS, "--create", "--topic", "x", "--topics-with-overrides"),
    (*ADDRESS, *ADDRESS, "--list"),
    (*ADDRESS, "--list", "--topic"),
]


@pytest.mark.parametrize("arguments", WRONG_OPTIONS, ids=" ".join)
def test_wrong_options(arguments: tuple[str, ...], kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(TOPICS.kafka_class, *arguments), run_ours(TOPICS, *arguments)
    assert (ours.code, ours.output, sentences(ours.errors)) == (theirs.code, theirs.output, sentences(theirs.errors))


def test_altering_settings_is_left_to_another_command(kafka_tools: KafkaTools) -> None:
    arguments = (*ADDRESS, "--alter", "--topic", "x", "--partitions", "2", "--config", "a=b")
    theirs, ours = kafka_tools.run(TOPICS.kafka_class, *arguments), run_ours(TOPICS, *arguments)
    assert (ours.code, ours.output) == (theirs.code, theirs.output) == (1, "")
    assert sorted(sentences(ours.errors)) == sorted(sentences(theirs.errors)), "Kafka's names options in any order"


def test_settings_file_that_is_missing_is_a_sentence(kafka_tools: KafkaTools) -> None:
    arguments = (*ADDRESS, "--list", "--command-config", "/nowhere")
    theirs, ours = kafka_tools.run(TOPICS.kafka_class, *arguments), run_ours(TOPICS, *arguments)
    assert (ours.code, ours.output) == (theirs.code, theirs.output) == (1, "")
    assert ours.errors.startswith("/nowhere")


def test_no_broker_is_a_sentence_after_the_timeout(places: Places) -> None:
    def scenario(place: Place) -> None:
        timeouts = place.file("default.api.timeout.ms=700\nrequest.timeout.ms=300\n")
        place.run(TOPICS, *ADDRESS, "--list", "--command-config", timeouts)

    same_at_all(places, scenario)


def test_deprecated_option_has_no_effect(places: Places) -> None:
    def scenario(place: Place) -> None:
        _topics(
            place, "--create", "--topic", place.name_of("deprecated"), "--delete-config", "x", "-if-not-exists", "word"
        )

    same_at_all(places, scenario)
