"""aiokafka: asyncio. All that is opened shares one event loop, which runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import NoOffsetForPartitionError, ProducerFenced, for_code

from tests.compat.clients.api import (
    CommittedOffset,
    ConsumerOptions,
    Partition,
)
from tests.compat.clients.python.sessions import GroupConsumer, Groups, Library, Row, TransactionalProducer
from tests.compat.drivers.api import CALL_TIMEOUT_SECONDS, error_name

T = TypeVar("T")

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Loop:
    """Runs coroutines for threads that wait for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_SECONDS)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: GroupConsumer) -> None:
        self._member = member

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member.rebalances += 1


class AiokafkaConsumer(GroupConsumer):
    def __init__(self, loop: Loop, bootstrap: str, options: ConsumerOptions) -> None:
        self._loop = loop
        self.group = options.group
        self._consumer: Any = None
        loop.run(self._start(bootstrap, options))

    async def _start(self, bootstrap: str, options: ConsumerOptions) -> None:
        assignor = (
            {} if options.assignor is None else {"partition_assignment_strategy": (_ASSIGNORS[options.assignor],)}
        )
        self._consumer = AIOKafkaConsumer(
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
        self._consumer.subscribe(topics=list(options.topics), pattern=options.pattern, listener=_Listener(self))
        await self._consumer.start()

    def poll(self) -> list[Row]:
        batches = self._loop.run(self._consumer.getmany(timeout_ms=100))
        return [
            (at.topic, at.partition, at.offset, (at.value or b"").decode()) for each in batches.values() for at in each
        ]

    def assignment(self) -> set[Partition]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def commit(self, offsets: Sequence[CommittedOffset] | None, *, wait: bool) -> None:
        words = None if offsets is None else {TopicPartition(t, p): (at, metadata) for t, p, at, metadata in offsets}
        self._loop.run(self._consumer.commit(words))

    def committed(self, partitions: Sequence[Partition]) -> list[tuple[str, int, int]]:
        found = [(t, p, self._loop.run(self._consumer.committed(TopicPartition(t, p)))) for t, p in partitions]
        return [(topic, partition, -1 if offset is None else offset) for topic, partition, offset in found]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(topic, partition), offset)

    def close(self) -> None:
        self._loop.run(self._consumer.stop())


class AiokafkaProducer(TransactionalProducer):
    def __init__(self, loop: Loop, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = loop
        self._producer: Any = None
        loop.run(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        await self._producer.start()

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        async def send() -> None:
            sent = [await self._producer.send(topic, value=value.encode(), partition=partition) for value in values]
            await asyncio.gather(*sent)

        self._loop.run(send())

    def send_offsets(self, offsets: Sequence[CommittedOffset], consumer: Any) -> None:
        assert isinstance(consumer, AiokafkaConsumer)
        words = {TopicPartition(topic, partition): offset for topic, partition, offset, _ in offsets}
        self._loop.run(self._producer.send_offsets_to_transaction(words, consumer.group))

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())

    def close(self) -> None:
        self._loop.run(self._producer.stop())


class AiokafkaGroups(Groups):
    def __init__(self, loop: Loop, bootstrap: str) -> None:
        self._loop = loop
        self._admin: Any = None
        loop.run(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> None:
        self._admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await self._admin.start()

    def states(self) -> list[Any]:
        return [(group, None) for group, *_ in self._loop.run(self._admin.list_consumer_groups())]

    def describe(self, group: str) -> dict[str, Any]:
        (response,) = self._loop.run(self._admin.describe_consumer_groups([group]))
        ((code, _, state, _, assignor, members, *_),) = response.groups
        if code:
            raise for_code(code)
        described = [
            {"client_id": client_id, "instance_id": None, "assignment": _assignment(assignment)}
            for *_, client_id, _, _, assignment in members
        ]
        return {"state": state, "assignor": assignor, "members": described}

    def offsets(self, group: str) -> list[CommittedOffset]:
        found = self._loop.run(self._admin.list_consumer_group_offsets(group))
        return [(at.topic, at.partition, each.offset, each.metadata) for at, each in found.items()]


class AiokafkaLibrary(Library):
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = Loop()
        self._groups: AiokafkaGroups | None = None

    def consumer(self, options: ConsumerOptions) -> GroupConsumer:
        return AiokafkaConsumer(self._loop, self._bootstrap, options)

    def producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        return AiokafkaProducer(self._loop, self._bootstrap, transactional_id, timeout_ms)

    def groups(self) -> Groups:
        if self._groups is None:
            self._groups = AiokafkaGroups(self._loop, self._bootstrap)
        return self._groups

    def error_name(self, error: Exception) -> str:
        if isinstance(error, NoOffsetForPartitionError):
            return "NO_OFFSET"
        if isinstance(error, ProducerFenced):
            return "PRODUCER_FENCED"
        code = int(getattr(error, "errno", -1) or -1)
        return error_name(code) if code > 0 else type(error).__name__


def _assignment(encoded: bytes) -> list[Partition]:
    if not encoded:
        return []
    decoded = ConsumerProtocolMemberAssignment.decode(encoded)
    return [(topic, partition) for topic, partitions in decoded.assignment for partition in partitions]


def library(bootstrap: str) -> Library:
    return AiokafkaLibrary(bootstrap)
