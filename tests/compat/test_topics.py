"""Topics through every client: made, seen, grown, deleted, made by themselves, and refused with Kafka's own error."""

from collections.abc import Callable

import pytest

from tests.compat.drivers.api import LATEST, Ability, Driver, Record, at_offset
from tests.compat.scenario import FIRST, NewTopic, eventually, needs, refusal, wait_for_leaders
from tests.peers.brokers import Brokers

MANY_PARTITIONS = 2000
CHOSEN_PARTITIONS = (0, 1, 1777, MANY_PARTITIONS - 1)


@needs(Ability.CREATE_TOPIC)
def test_a_created_topic_is_seen_by_others(broker: Brokers, driver: Driver, reference: Driver, topic_name: str) -> None:
    driver.create_topic(topic_name, partitions=5, config={"retention.ms": "86400000"})
    eventually(lambda: reference.partition_count(topic_name) == 5, "the topic in the metadata")
    wait_for_leaders(broker, topic_name, [4])
    assert reference.describe_config(topic_name)["retention.ms"] == "86400000"
    assert driver.produce(topic_name, [Record(b"v", partition=4)]) == [0]


def test_partitions_are_counted_from_metadata(driver: Driver, new_topic: NewTopic, topic_name: str) -> None:
    topic = new_topic(partitions=7)
    eventually(lambda: driver.partition_count(topic) == 7, "seven partitions in the metadata")
    assert driver.partition_count(topic_name) == 0


@needs(Ability.CREATE_TOPIC)
def test_a_topic_is_created_once(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert refusal(lambda: driver.create_topic(topic)) == "TOPIC_ALREADY_EXISTS"


@needs(Ability.CREATE_TOPIC)
@pytest.mark.parametrize("name", ["with space", "slash/ed", ".", "..", "ü", "x" * 250])
def test_an_invalid_name_is_refused(driver: Driver, name: str) -> None:
    assert refusal(lambda: driver.create_topic(name)) == "INVALID_TOPIC_EXCEPTION"


@needs(Ability.CREATE_TOPIC)
def test_a_name_whose_metrics_would_collide_is_refused(driver: Driver, reference: Driver, topic_name: str) -> None:
    reference.create_topic(f"{topic_name}.dotted")
    assert refusal(lambda: driver.create_topic(f"{topic_name}_dotted")) == "INVALID_TOPIC_EXCEPTION"


@needs(Ability.CREATE_TOPIC)
def test_a_topic_with_a_wrong_setting_is_not_created(driver: Driver, reference: Driver, topic_name: str) -> None:
    assert refusal(lambda: driver.create_topic(topic_name, config={"segment.bytes": "many"})) == "INVALID_CONFIG"
    assert refusal(lambda: driver.create_topic(topic_name, config={"no.such.setting": "1"})) == "INVALID_CONFIG"
    assert reference.partition_count(topic_name) == 0


@needs(Ability.CREATE_TOPIC)
def test_a_topic_without_partitions_is_refused(driver: Driver, topic_name: str) -> None:
    assert refusal(lambda: driver.create_topic(topic_name, partitions=0)) == "INVALID_PARTITIONS"


def test_producing_creates_a_topic_with_the_default_partitions(
    driver: Driver, reference: Driver, topic_name: str
) -> None:
    assert driver.produce(topic_name, [Record(b"first", b"key")]) == [0]
    eventually(lambda: reference.partition_count(topic_name) == 3, "num.partitions partitions")
    assert [record.value for record in reference.consume(topic_name, start=FIRST, count=1)] == [b"first"]


@needs(Ability.DELETE_TOPIC)
def test_a_deleted_topic_is_gone_and_its_name_free(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    reference.produce(topic, [Record(b"old")])
    driver.delete_topic(topic)
    eventually(lambda: reference.partition_count(topic) == 0, "the topic gone from the metadata")
    reference.create_topic(topic)
    assert reference.produce(topic, [Record(b"new")]) == [0]
    assert [record.value for record in reference.consume(topic, start=FIRST, count=1)] == [b"new"]


@needs(Ability.DELETE_TOPIC)
def test_an_unknown_topic_cannot_be_deleted(driver: Driver, topic_name: str) -> None:
    assert refusal(lambda: driver.delete_topic(topic_name)) == "UNKNOWN_TOPIC_OR_PARTITION"


@needs(Ability.CREATE_PARTITIONS)
def test_added_partitions_take_records(broker: Brokers, driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    reference.produce(topic, [Record(b"kept", partition=1)])
    driver.create_partitions(topic, 6)
    eventually(lambda: driver.partition_count(topic) == 6, "six partitions in the metadata")
    wait_for_leaders(broker, topic, [5])
    assert driver.produce(topic, [Record(b"v", partition=5)]) == [0]
    assert reference.consume(topic, start=FIRST, count=1, partition=1)[0].value == b"kept"


@needs(Ability.CREATE_PARTITIONS)
def test_partitions_cannot_be_taken_away(driver: Driver, new_topic: NewTopic, topic_name: str) -> None:
    topic = new_topic(partitions=3)
    assert refusal(lambda: driver.create_partitions(topic, 2)) == "INVALID_PARTITIONS"
    assert refusal(lambda: driver.create_partitions(topic, 3)) == "INVALID_PARTITIONS"
    assert refusal(lambda: driver.create_partitions(topic_name, 2)) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.fixture(scope="module")
def wide_topic(shared_broker: Brokers, drivers: Callable[[str], Driver]) -> str:
    drivers("confluent-kafka").create_topic("wide", partitions=MANY_PARTITIONS)
    wait_for_leaders(shared_broker, "wide", range(MANY_PARTITIONS))
    return "wide"


def test_a_topic_of_thousands_of_partitions(driver: Driver, reference: Driver, wide_topic: str) -> None:
    eventually(lambda: driver.partition_count(wide_topic) == MANY_PARTITIONS, "every partition in the metadata")
    value = driver.name.encode()
    driver.produce(wide_topic, [Record(value, b"k", partition=partition) for partition in CHOSEN_PARTITIONS])
    for partition in CHOSEN_PARTITIONS:
        written = reference.list_offset(wide_topic, LATEST, partition=partition)
        received = reference.consume(wide_topic, start=at_offset(written - 1), count=1, partition=partition)
        assert [record.value for record in received] == [value]
