"""kafka-python: pure Python, blocking."""

from collections.abc import Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

from tests.compat.clients.api import (
    CommittedOffset,
    ConsumerOptions,
    Partition,
)
from tests.compat.clients.python.sessions import GroupConsumer, Groups, Library, Row, TransactionalProducer
from tests.compat.drivers.api import CALL_TIMEOUT_SECONDS, error_name

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: GroupConsumer) -> None:
        self._member = member

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member.rebalances += 1


class KafkaPythonConsumer(GroupConsumer):
    def __init__(self, bootstrap: str, options: ConsumerOptions) -> None:
        assignor = {} if options.assignor is None else {"partition_assignment_strategy": [_ASSIGNORS[options.assignor]]}
        self.consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=options.group,
            group_instance_id=options.instance_id,
            auto_offset_reset=options.reset,
            enable_auto_commit=options.auto_commit,
            auto_commit_interval_ms=options.auto_commit_interval_ms,
            isolation_level=options.isolation,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            metadata_max_age_ms=options.metadata_max_age_ms,
            **assignor,
        )
        self.consumer.subscribe(topics=list(options.topics), pattern=options.pattern, listener=_Listener(self))

    def poll(self) -> list[Row]:
        # It can miss its assignment for good when a poll ends just while it joins, so polls are not the shortest.
        try:
            batches = self.consumer.poll(timeout_ms=500)
        except errors.KafkaConnectionError:  # the next poll connects again
            return []
        return [
            (at.topic, at.partition, at.offset, (at.value or b"").decode()) for each in batches.values() for at in each
        ]

    def assignment(self) -> set[Partition]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def commit(self, offsets: Sequence[CommittedOffset] | None, *, wait: bool) -> None:
        words = None if offsets is None else _offsets(offsets)
        if wait:
            self.consumer.commit(words)
        else:
            self.consumer.commit_async(words)

    def committed(self, partitions: Sequence[Partition]) -> list[tuple[str, int, int]]:
        found = [(t, p, self.consumer.committed(TopicPartition(t, p))) for t, p in partitions]
        return [(topic, partition, -1 if offset is None else offset) for topic, partition, offset in found]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(topic, partition), offset)

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonProducer(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        for future in [self._producer.send(topic, value=value.encode(), partition=partition) for value in values]:
            future.get(timeout=CALL_TIMEOUT_SECONDS)

    def send_offsets(self, offsets: Sequence[CommittedOffset], consumer: Any) -> None:
        assert isinstance(consumer, KafkaPythonConsumer)
        self._producer.send_offsets_to_transaction(_offsets(offsets), consumer.consumer.group_metadata())

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=1)


class KafkaPythonGroups(Groups):
    def __init__(self, bootstrap: str) -> None:
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def states(self) -> list[Any]:
        return [(each["group_id"], each["group_state"]) for each in self._admin.list_groups()]

    def describe(self, group: str) -> dict[str, Any]:
        described = self._admin.describe_groups([group])[group]
        members = [
            {
                "client_id": each["client_id"],
                "instance_id": each["group_instance_id"],
                "assignment": _assignment(each["member_assignment"]),
            }
            for each in described["members"]
        ]
        return {"state": described["group_state"], "assignor": described["protocol_data"], "members": members}

    def delete(self, group: str) -> None:
        outcome = self._admin.delete_groups([group])[group]
        if outcome != "OK":
            raise getattr(errors, outcome)

    def offsets(self, group: str) -> list[CommittedOffset]:
        found = self._admin.list_group_offsets(group)[group]
        return [(at.topic, at.partition, each.offset, each.metadata or "") for at, each in found.items()]

    def set_offsets(self, group: str, offsets: Sequence[CommittedOffset]) -> None:
        _check(self._admin.alter_group_offsets(group, _offsets(offsets)))

    def delete_offsets(self, group: str, partitions: Sequence[Partition]) -> None:
        _check(self._admin.delete_group_offsets(group, [TopicPartition(t, p) for t, p in partitions]))


class KafkaPythonLibrary(Library):
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._groups: KafkaPythonGroups | None = None

    def consumer(self, options: ConsumerOptions) -> GroupConsumer:
        return KafkaPythonConsumer(self._bootstrap, options)

    def producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        return KafkaPythonProducer(self._bootstrap, transactional_id, timeout_ms)

    def groups(self) -> Groups:
        if self._groups is None:
            self._groups = KafkaPythonGroups(self._bootstrap)
        return self._groups

    def error_name(self, error: Exception) -> str:
        if isinstance(error, errors.NoOffsetForPartitionError):
            return "NO_OFFSET"
        code = int(getattr(error, "errno", -1) or -1)
        return error_name(code) if code > 0 else type(error).__name__


def _offsets(offsets: Sequence[CommittedOffset]) -> dict[Any, Any]:
    return {TopicPartition(t, p): OffsetAndMetadata(offset, metadata, -1) for t, p, offset, metadata in offsets}


def _assignment(encoded: Any) -> list[Partition]:
    if not encoded:
        return []
    return [(each["topic"], partition) for each in encoded["assigned_partitions"] for partition in each["partitions"]]


def _check(outcomes: Any) -> None:
    for error in outcomes.values():
        if error is not errors.NoError:
            raise error


def library(bootstrap: str) -> Library:
    return KafkaPythonLibrary(bootstrap)
