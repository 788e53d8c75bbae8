"""Markers are written until every partition has its own; no partition waits for another."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.marker_writer import Due, MarkerWriter
from kaspar.broker.coordination.markers import Marker, MarkerKind
from kaspar.broker.services import Failures, Tasks
from kaspar.metadata.images import ImageSource
from kaspar.transactions.actions import WriteFences, WriteMarkers

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
SHARD = 7
EPOCH = 3


def markers(*partitions: TopicPartition, transactional_id: str = "payments") -> WriteMarkers:
    return WriteMarkers(
        transactional_id,
        ProducerIdAndEpoch(1000, 5),
        EPOCH,
        frozenset(partitions),
        committed=True,
        transaction_version=2,
    )


class Cluster:
    """Partitions whose leaders say what the test wants them to say, in this order, and NONE from then on."""

    def __init__(self) -> None:
        self.existing = {A0, A1, B0}
        self.says: dict[TopicPartition, deque[ErrorCode | asyncio.Event | Exception]] = {}
        self.bugs: list[Exception] = []
        self.given: list[TopicPartition] = []
        self.deleted: set[TopicPartition] = set()
        self.reported: list[Due] = []
        self.abandoned: list[Due] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_ours = True
        self.term = 0
        image = SimpleNamespace(has_partition=lambda each: each in self.existing)
        self.writer = MarkerWriter(
            images=cast(ImageSource, SimpleNamespace(current=image)),
            tasks=cast(Tasks, SimpleNamespace(spawn=self.spawn)),
            failures=cast(Failures, SimpleNamespace(on_bug=self.bugs.append)),
            give=self.give,
            is_deleted=self.is_deleted,
            claim=self.claim,
            written=lambda partition, action: self.reported.append(action),
            abandoned=lambda partition, action: self.abandoned.append(action),
        )

    def claim(self, partition: int) -> Callable[[], bool]:
        assert partition == SHARD
        term = self.term
        return lambda: self.is_ours and self.term == term

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def is_deleted(self, partition: TopicPartition) -> bool:
        return partition in self.deleted

    async def give(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        assert marker[1:] == ((1000, 5), EPOCH, 2 if marker.kind is MarkerKind.COMMIT else 0)
        self.given.append(partition)
        responses = self.says.get(partition)
        if not responses:
            return ErrorCode.NONE
        response = responses.popleft()
        if isinstance(response, asyncio.Event):
            await response.wait()
            return ErrorCode.NONE
        if isinstance(response, Exception):
            raise response
        return response

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if condition():
                return
            await asyncio.sleep(0.001)
        raise AssertionError("it never came to that")

    async def end(self) -> None:
        for task in tuple(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaspar.broker.coordination.marker_writer.FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr("kaspar.broker.coordination.marker_writer.LONGEST_PAUSE_S", 0.002)


def play(scene: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        cluster = Cluster()
        try:
            await scene(cluster)
        finally:
            await cluster.end()

    asyncio.run(run())


def test_a_bug_is_reported_and_the_marker_is_still_written() -> None:
    async def scene(cluster: Cluster) -> None:
        bug = ZeroDivisionError()
        cluster.says[A0] = deque([bug])
        cluster.writer.write(SHARD, markers(A0, A1))
        await cluster.until(lambda: not cluster.tasks)
        assert sorted(cluster.given) == [A0, A0, A1]
        assert cluster.reported == [markers(A0, A1)]
        assert cluster.bugs == [bug]

    play(scene)


def test_it_is_reported_once_when_every_partition_has_its_marker() -> None:
    async def scene(cluster: Cluster) -> None:
        action = markers(A0, A1, B0)
        cluster.writer.write(SHARD, action)
        await cluster.until(lambda: not cluster.tasks)
        assert sorted(cluster.given) == [A0, A1, B0]
        assert cluster.reported == [action]

    play(scene)


def test_a_transaction_without_partitions_is_reported_at_once() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.writer.write(SHARD, markers())
        assert cluster.reported == [markers()]

    play(scene)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ],
)
def test_whatever_a_partition_says_it_is_asked_again(code: ErrorCode) -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.says[A0] = deque([code] * 20)
        cluster.writer.write(SHARD, markers(A0, B0))
        await cluster.until(lambda: bool(cluster.reported))
        assert cluster.given.count(A0) == 21
        assert cluster.given.count(B0) == 1
        assert cluster.writer.waiting_count == 0

    play(scene)


def test_a_partition_that_has_seen_a_later_epoch_needs_no_marker() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.says[A0] = deque([ErrorCode.INVALID_PRODUCER_EPOCH])
        cluster.writer.write(SHARD, markers(A0))
        await cluster.until(lambda: bool(cluster.reported))
        assert cluster.given == [A0]

    play(scene)


def test_a_topic_that_is_deleted_needs_no_marker() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.existing = {A0, A1}
        cluster.deleted = {B0}
        cluster.writer.write(SHARD, markers(A0, B0))
        await cluster.until(lambda: bool(cluster.reported))
        assert cluster.given == [A0]

    play(scene)


def test_a_topic_that_an_image_merely_lacks_gets_its_marker_when_it_is_back() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.existing = {A0, A1}
        cluster.writer.write(SHARD, markers(A0, B0))
        await cluster.until(lambda: cluster.given == [A0] and cluster.writer.waiting_count == 1)
        cluster.existing = {A0, A1, B0}
        cluster.writer.image_changed()
        await cluster.until(lambda: bool(cluster.reported))
        assert cluster.given == [A0, B0]

    play(scene)


def test_fences_are_written_as_markers_are() -> None:
    async def scene(cluster: Cluster) -> None:
        action = WriteFences("payments", ProducerIdAndEpoch(1000, 5), EPOCH, frozenset({A0, B0}))
        cluster.says[A0] = deque([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION])
        cluster.writer.write(SHARD, action)
        await cluster.until(lambda: cluster.reported == [action])
        assert sorted(cluster.given) == [A0, A0, A0, B0]

    play(scene)


def test_a_topic_that_goes_while_it_is_waited_for_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaspar.broker.coordination.marker_writer.FIRST_PAUSE_S", 3600)

    async def scene(cluster: Cluster) -> None:
        cluster.says[B0] = deque([ErrorCode.KAFKA_STORAGE_ERROR])
        cluster.writer.write(SHARD, markers(B0))
        await cluster.until(lambda: cluster.writer.waiting_count == 1)
        cluster.existing, cluster.deleted = {A0, A1}, {B0}
        cluster.writer.image_changed()
        await cluster.until(lambda: bool(cluster.reported))

    play(scene)


def test_a_slow_partition_holds_up_no_other_partition_and_no_other_transaction() -> None:
    async def scene(cluster: Cluster) -> None:
        slow = asyncio.Event()
        cluster.says[A0] = deque([slow])
        cluster.writer.write(SHARD, markers(A0, A1, B0))
        await cluster.until(lambda: {A1, B0} <= set(cluster.given))
        assert not cluster.reported
        other = markers(A1, transactional_id="other")
        cluster.writer.write(SHARD, other)
        await cluster.until(lambda: cluster.reported == [other])
        slow.set()
        await cluster.until(lambda: len(cluster.reported) == 2)

    play(scene)


def test_when_another_broker_coordinates_it_nothing_more_is_written_or_reported() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.says[A0] = deque([ErrorCode.KAFKA_STORAGE_ERROR] * 1000)
        cluster.writer.write(SHARD, markers(A0, B0))
        await cluster.until(lambda: cluster.given.count(A0) > 2)
        cluster.is_ours = False
        await cluster.until(lambda: not cluster.tasks)
        assert not cluster.reported
        assert cluster.abandoned == [markers(A0, B0)]

    play(scene)


def test_a_writer_from_before_a_break_writes_and_reports_nothing_more() -> None:
    """A broker that lost its registration may coordinate again in the same epoch, with writers of its own: a marker of
    the former ones would end the next transaction of the producer.
    """

    async def scene(cluster: Cluster) -> None:
        slow = asyncio.Event()
        cluster.says[A0] = deque([slow])
        cluster.writer.write(SHARD, markers(A0))
        await cluster.until(lambda: A0 in cluster.given)
        cluster.term += 1
        slow.set()
        await cluster.until(lambda: not cluster.tasks)
        assert cluster.given == [A0]
        assert not cluster.reported
        assert cluster.abandoned == [markers(A0)]

    play(scene)
