"""The log of consumer groups is Kafka's: the same requests leave the same records in both brokers, and a group whose
folder moves to the other broker goes on there with its members.
"""

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.groups import records
from kaspar.protocol.consumer_protocol import write_assignment
from kaspar.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_consumer_groups import RawConsumer, describe_consumer_group
from tests.peers.raw_groups import RawMember
from tests.peers.raw_transactions import GROUP as GROUP_COORDINATOR
from tests.peers.raw_transactions import find_coordinator
from tests.unit.groups.subscriptions import write_subscription

GROUP = "readers"
TOPIC = "orders"
OFFSETS = "__consumer_offsets"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
BROKERS: dict[str, type[ApacheKafka] | type[KasparProcess]] = {"kafka": ApacheKafka, "kaspar": KasparProcess}
MOMENTS = {"assignment_timestamp", "timestamp", "current_state_timestamp"}
COUNTED_OTHERWISE = {"version", "metadata_hash"}
"""The version of the topics, which each broker counts in its own way; the hash, which is of the topic's random id."""


@pytest.fixture(scope="module", autouse=True)
def _kafka_is_there() -> None:
    unless_missing(kafka_jars)


def prepare(broker: BrokerProcess, client: RawClient) -> None:
    """A topic that the coordinator knows. The group that finds that out is another one."""
    assert client.create_topic(TOPIC, partitions=4) == ErrorCode.NONE
    first = RawConsumer(client, "first", (TOPIC,), member_id="first")
    find_coordinator(client, "first", GROUP_COORDINATOR)

    def is_known() -> bool:
        first.join()
        return bool(first.partitions)

    wait_until(is_known, "the coordinator knows the topic")


def live(broker: BrokerProcess, client: RawClient) -> None:
    """What happens to a group in its life."""
    a, b = (RawConsumer(client, GROUP, (TOPIC,), member_id=name) for name in "ab")
    a.join()
    b.join()
    a.heartbeat()
    a.step()
    b.heartbeat()
    b.step()
    static = RawConsumer(client, GROUP, (TOPIC,), member_id="c", instance_id="i", assignor="range")
    static.join()
    for consumer in (a, b, a, b, static, static):
        consumer.step()
    static.leave(-2)
    back = RawConsumer(client, GROUP, (TOPIC,), member_id="d", instance_id="i", assignor="range")
    back.join()
    back.step()
    for consumer in (a, b, back):
        consumer.leave()


def change_protocol(broker: BrokerProcess, client: RawClient) -> None:
    """A member that stays in the group, of the classic protocol, with another that comes and goes."""
    subscription = write_subscription(ConsumerProtocolSubscription(topics=(TOPIC,)), 3)
    assigned = (TopicPartition(topic=TOPIC, partitions=(0, 1, 2, 3)),)
    assignment = write_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned), 3)
    with RawMember(broker.port, GROUP, instance_id="s", protocols={"range": subscription}) as old:
        old.join()
        old.sync({old.member_id: assignment})
        new = RawConsumer(client, GROUP, (TOPIC,), member_id="e")
        new.join()
        old.join()
        old.sync()
        new.heartbeat()
        new.leave()


def use_a_pattern(broker: BrokerProcess, client: RawClient) -> None:
    one = RawConsumer(client, GROUP, pattern="ord.*", member_id="p")
    one.join()

    def is_resolved() -> bool:
        one.heartbeat()
        return bool(one.partitions)

    wait_until(is_resolved, "the pattern is resolved")
    one.leave()


# -- the same records --------------------------------------------------------------------------------------------------


def written(client: RawClient) -> Iterator[Any]:
    """The records of the group, in words that do not depend on where and when."""
    ids = {topic.topic_id: topic.name for topic in client.metadata(TOPIC).topics}
    names: dict[str, str] = {}
    for record in client.read_all(OFFSETS):
        assert record.key is not None
        stored = records.decode(bytes(record.key), None if record.value is None else bytes(record.value))
        assert stored is not None
        if GROUP in (getattr(stored.key, "group_id", None), getattr(stored.key, "group", None)):
            yield plain(stored.key, ids, names), plain(stored.value, ids, names)


def plain(value: Any, ids: dict[uuid.UUID, str | None], names: dict[str, str]) -> Any:
    """Topics by name, moments left out, and members that the broker has named in the order in which they came."""
    if is_dataclass(value):
        return type(value).__name__, {
            field.name: plain(getattr(value, field.name), ids, names)
            for field in fields(value)
            if field.name not in MOMENTS | COUNTED_OTHERWISE
        }
    if isinstance(value, uuid.UUID):
        return ids.get(value, "gone")
    if isinstance(value, tuple):
        return [plain(each, ids, names) for each in value]
    if isinstance(value, str) and len(value) > len("readers"):
        return names.setdefault(value, f"name {len(names)}")
    return value


def in_one_order(found: list[Any]) -> list[Any]:
    """The targets of one assignment are in no order, and neither are the tombstones of one kind."""
    ordered: list[Any] = []
    for (kind, is_tombstone), run in groupby(found, lambda record: (record[0][0], record[1] is None)):
        together = list(run)
        if is_tombstone or kind == "ConsumerGroupTargetAssignmentMemberKey":
            together.sort(key=repr)
        ordered += together
    return ordered


@pytest.mark.parametrize("happens", [live, change_protocol, use_a_pattern])
def test_the_same_requests_leave_the_same_records(happens: Any, tmp_path: Path) -> None:
    logs = {}
    for name, kind in BROKERS.items():
        with kind(tmp_path / name, overrides=SETTINGS) as broker, RawClient(broker.port) as client:
            prepare(broker, client)
            happens(broker, client)
            logs[name] = in_one_order(list(written(client)))
    assert logs["kaspar"] == logs["kafka"]


# -- the other broker --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("writer", "reader"), [("kafka", "kaspar"), ("kaspar", "kafka")])
def test_a_group_goes_on_in_the_other_broker(tmp_path: Path, writer: str, reader: str) -> None:
    wrote = BROKERS[writer](tmp_path / "writer", overrides=SETTINGS)
    reads = BROKERS[reader](tmp_path / "reader", overrides=SETTINGS)
    with wrote, RawClient(wrote.port) as client:
        prepare(wrote, client)
        one = RawConsumer(client, GROUP, (TOPIC,), member_id="a")
        two = RawConsumer(client, GROUP, (TOPIC,), member_id="b", instance_id="i")
        one.join()
        two.join()
        for consumer in (one, one, two, two):
            consumer.step()
        before = describe_consumer_group(client, GROUP)
    with reads, RawClient(reads.port) as client:
        prepare(reads, client)
    source, target = wrote.data_dir / f"{OFFSETS}-0", reads.data_dir / f"{OFFSETS}-0"
    kept = (target / "partition.metadata").read_bytes()
    shutil.rmtree(target)
    shutil.copytree(source, target)
    (target / "partition.metadata").write_bytes(kept)
    with reads, RawClient(reads.port) as client:
        find_coordinator(client, GROUP, GROUP_COORDINATOR)
        wait_until(
            lambda: describe_consumer_group(client, GROUP).error_code == ErrorCode.NONE, "the coordinator has loaded"
        )
        after = describe_consumer_group(client, GROUP)
        assert after.group_epoch == before.group_epoch
        assert {(each.member_id, each.instance_id, each.member_epoch) for each in after.members} == {
            (each.member_id, each.instance_id, each.member_epoch) for each in before.members
        }
        # To this broker the topic is another one: the members' partitions are gone, and they get a new assignment.
        one.client = two.client = client

        def is_settled() -> bool:
            for consumer in (one, two):
                assert ErrorCode(consumer.step().error_code) is ErrorCode.NONE
            return sorted(one.partitions + two.partitions) == [0, 1, 2, 3]

        wait_until(is_settled, "the members share the topic of this broker")
