"""Writes the markers that end transactions, and the fences of prepared ones, until every partition has its own.

Rules:
- Partitions are independent: a slow one, or one without a leader, delays no other partition and no other transaction,
  only the completion of its own transaction.
- A marker that a partition cannot accept now is retried, after a growing pause, and whenever the cluster's image
  changes, because another broker may lead the partition then. A marker is only given up if it is not needed: its topic
  was deleted, or the partition has seen a later epoch of the producer, with which the transaction has ended there.
- A topic counts as deleted if the metadata store no longer has it. If it is missing from an image, that proves nothing:
  images are assembled from many reads.
- When this broker no longer coordinates the transaction, its next coordinator writes the markers.
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
"""A fence ends no transaction, so the version of the rules for ending it does not matter."""

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
        """`is_deleted`: whether the cluster is known not to have a partition. `claim` returns, for one partition of the
        internal topic, a function that tells whether this broker has coordinated it without interruption since. In the
        end `written` is called with partition and action, or `abandoned` after an interruption: the current coordinator
        writes its own markers.
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
        """The number of markers that could not be written at once, and still are not."""

    def write(self, partition: int, action: Due) -> None:
        if not action.partitions:
            self._written(partition, action)
            return
        writing = self._write_all(partition, action, self._claim(partition))
        self._tasks.spawn(writing, name=f"markers of {action.transactional_id}")

    def image_changed(self) -> None:
        """Retry now: a topic may have been deleted, or a partition may have a leader again."""
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
        """Whether the partition has its marker, or needs none. If not, this broker is no longer responsible for it."""
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
        """Try to write a marker. A bug is reported, and the caller retries."""
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
