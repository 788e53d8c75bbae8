"""Writes the markers that end transactions, and the fences of prepared ones, until every partition has its own.

Rules:
- Every partition is written by itself: one that is slow, or whose leader is away, holds up no other partition and no
  other transaction, only the completion of its own.
- A marker that a partition cannot take now is tried again, after a pause that grows, and whenever the cluster's image
  changes: then another broker may lead the partition. A marker is never given up, except where it is not needed: its
  topic has been deleted, or the partition has seen a later epoch of the producer, for which the transaction has ended
  there already.
- A topic is deleted if the metadata store has it no longer. That an image lacks it proves nothing: images are
  put together from many reads.
- When this broker coordinates the transaction no longer, its next coordinator writes them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.broker.coordination.markers import GiveMarker, Marker, MarkerKind
from kaspar.broker.services import Failures, Tasks
from kaspar.metadata.images import ImageSource
from kaspar.transactions.actions import WriteFences, WriteMarkers

log = get_log(__name__)

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0
NO_VERSION: Final = 0
"""A fence ends no transaction: by which rules it ends does not matter."""

_NOT_NEEDED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})

Due: TypeAlias = WriteMarkers | WriteFences


class MarkerWriter:
    def __init__(
        self,
        *,
        images: ImageSource,
        tasks: Tasks,
        failures: Failures,
        give: GiveMarker,
        is_deleted: Callable[[TopicPartition], Awaitable[bool]],
        claim: Callable[[int], Callable[[], bool]],
        written: Callable[[int, Due], None],
        abandoned: Callable[[int, Due], None],
    ) -> None:
        """`is_deleted`: whether the cluster is known to have no such partition. `claim` returns what tells, for one
        partition, whether this broker has coordinated it without a break since. `written` is called with partition and
        action, or `abandoned`, if there was a break: who coordinates it now has writers of its own.
        """
        self._images = images
        self._tasks = tasks
        self._failures = failures
        self._give = give
        self._is_deleted = is_deleted
        self._claim = claim
        self._written = written
        self._abandoned = abandoned
        self._look_again = asyncio.Event()
        self.waiting_count = 0
        """How many markers could not be written at once, and still are not."""

    def write(self, partition: int, action: Due) -> None:
        if not action.partitions:
            self._written(partition, action)
            return
        writing = self._write_all(partition, action, self._claim(partition))
        self._tasks.spawn(writing, name=f"markers of {action.transactional_id}")

    def image_changed(self) -> None:
        """A topic may have been deleted, or a partition have a leader again."""
        self._look_again.set()
        self._look_again = asyncio.Event()

    async def _write_all(self, partition: int, action: Due, is_ours: Callable[[], bool]) -> None:
        if len(action.partitions) == 1:
            (only,) = action.partitions
            done = await self._write_one(action, only, is_ours)
        else:
            writes = (self._write_one(action, each, is_ours) for each in action.partitions)
            done = all(await asyncio.gather(*writes))
        (self._written if done and is_ours() else self._abandoned)(partition, action)

    async def _write_one(self, action: Due, target: TopicPartition, is_ours: Callable[[], bool]) -> bool:
        """Whether the partition has its marker, or needs none. If not, that is another coordinator's concern now."""
        pause_s = FIRST_PAUSE_S
        marker = _marker(action)
        while is_ours():
            if self._images.current.has_partition(target):
                code = await self._try_to_give(action, target, marker)
            elif await self._is_deleted(target):
                return True
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code is ErrorCode.NONE:
                return True
            self._say(action, target, code)
            if code in _NOT_NEEDED:
                return True
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    async def _try_to_give(self, action: Due, target: TopicPartition, marker: Marker) -> ErrorCode:
        """A bug in one attempt is reported, and the marker is tried again."""
        try:
            return await self._give(target, marker)
        except Exception as problem:
            log.exception("a marker could not be written", partition=target, transactional_id=action.transactional_id)
            self._failures.on_bug(problem)
            return ErrorCode.UNKNOWN_SERVER_ERROR

    async def _pause(self, seconds: float) -> None:
        self.waiting_count += 1
        try:
            await asyncio.wait_for(self._look_again.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self.waiting_count -= 1

    @staticmethod
    def _say(action: Due, target: TopicPartition, code: ErrorCode) -> None:
        log.warning(
            "a partition rejected a transaction marker",
            transactional_id=action.transactional_id,
            partition=target,
            producer_id=action.producer.producer_id,
            producer_epoch=action.producer.producer_epoch,
            code=code.name,
        )


def _marker(action: Due) -> Marker:
    if isinstance(action, WriteFences):
        return Marker(MarkerKind.FENCE, action.producer, action.coordinator_epoch, NO_VERSION)
    kind = MarkerKind.COMMIT if action.committed else MarkerKind.ABORT
    return Marker(kind, action.producer, action.coordinator_epoch, action.transaction_version)
