"""Writes the markers that end transactions, until every partition has its own.

Rules:
- Every partition is written by itself: one that is slow, or whose directory has failed, holds up no other partition and
  no other transaction, only the completion of its own.
- A partition that cannot take the marker now is asked again, after a pause that grows, and whenever the cluster's image
  changes. A marker is never given up, except where nobody will ever need it: its topic is gone, or the partition has
  seen a later epoch of the producer, for which the transaction has ended there already.
- When this broker coordinates the transaction no longer, its next coordinator writes them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.base.log import get_log
from kaspar.transactions.actions import WriteMarkers

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0

_NOT_NEEDED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})


class GiveMarker(Protocol):
    """How the leader of a partition is given a marker, whichever broker that is; and what it says."""

    def __call__(
        self,
        partition: TopicPartition,
        producer: ProducerIdAndEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> Awaitable[ErrorCode]: ...


class MarkerWriter:
    def __init__(
        self,
        broker: "Broker",
        *,
        give: GiveMarker,
        is_ours: Callable[[int, int], bool],
        written: Callable[[int, WriteMarkers], None],
    ) -> None:
        """`is_ours` is asked with partition and coordinator epoch, `written` told with partition and action."""
        self._broker = broker
        self._give = give
        self._is_ours = is_ours
        self._written = written
        self._look_again = asyncio.Event()
        self.waiting_count = 0
        """How many markers could not be written at once, and still are not."""

    def write(self, partition: int, action: WriteMarkers) -> None:
        if not action.partitions:
            self._written(partition, action)
            return
        self._broker.spawn(self._write_all(partition, action), name=f"markers of {action.transactional_id}")

    def image_changed(self) -> None:
        """A topic may be gone, or a partition have a leader again."""
        self._look_again.set()
        self._look_again = asyncio.Event()

    async def _write_all(self, partition: int, action: WriteMarkers) -> None:
        if len(action.partitions) == 1:
            (only,) = action.partitions
            done = await self._write_one(partition, action, only)
        else:
            writes = (self._write_one(partition, action, each) for each in action.partitions)
            done = all(await asyncio.gather(*writes))
        if done:
            self._written(partition, action)

    async def _write_one(self, partition: int, action: WriteMarkers, target: TopicPartition) -> bool:
        """Whether the partition has its marker, or needs none. If not, that is another coordinator's concern now."""
        pause_s = FIRST_PAUSE_S
        while self._is_ours(partition, action.coordinator_epoch):
            if not self._broker.image.has_partition(target):
                return True
            code = await self._try_to_give(action, target)
            if code is ErrorCode.NONE:
                return True
            self._say(action, target, code)
            if code in _NOT_NEEDED:
                return True
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    async def _try_to_give(self, action: WriteMarkers, target: TopicPartition) -> ErrorCode:
        """A bug met by one attempt is told, and does not leave the transaction without its end."""
        try:
            return await self._give(
                target,
                action.producer,
                committed=action.committed,
                coordinator_epoch=action.coordinator_epoch,
                transaction_version=action.transaction_version,
            )
        except Exception as problem:
            log.exception("a marker could not be written", partition=target, transactional_id=action.transactional_id)
            self._broker.request_failed(problem)
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
    def _say(action: WriteMarkers, target: TopicPartition, code: ErrorCode) -> None:
        log.warning(
            "a partition did not take the marker of a transaction",
            transactional_id=action.transactional_id,
            partition=target,
            producer_id=action.producer.producer_id,
            producer_epoch=action.producer.producer_epoch,
            code=code.name,
        )
