"""The fence: the node of the store that every metadata write of a controller also puts.

It is put on the condition that nobody else has put it since. That one operation is the fencing (a newer controller has
put it, so an older one is refused) and the answer to unknown outcomes (the fence says whether the transaction is in).
Two transactions of one controller cannot overtake each other either.

A controller that claims the fence again after an outage takes the next epoch: a transaction of its earlier epoch that
is still under way somewhere is refused from then on, so what is read after the claim is all there is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.metadata import layout
from kaspar.metadata.store import Operation, Put, Store, UnknownOutcome, VersionConflict

T = TypeVar("T")
log = get_log(__name__)

MAX_ATTEMPTS: Final = 20
PATIENCE_S: Final = 5.0
"""However few attempts that was: a store that hangs takes its time for each."""


class NoLongerController(Refused):
    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, reason)


class StoreAway(Refused):
    """The store has not answered for a while. To a client that is a cluster without a controller: it asks again."""

    def __init__(self, reason: str = "the metadata store does not answer") -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, reason)


@dataclass(frozen=True, slots=True)
class _Hold:
    controller_id: BrokerId
    epoch: int
    transaction: int
    version: int


class Fence:
    """One controller's hold on the store."""

    def __init__(self, store: Store, broker_id: BrokerId, *, retry_delay_s: float) -> None:
        self.store = store
        """Replaced when its session is lost."""
        self._broker_id = broker_id
        self._retry_delay_s = retry_delay_s
        self._hold: _Hold | None = None
        self._last_claimed = -1

    @property
    def epoch(self) -> int:
        return self._held().epoch

    async def claim(self) -> None:
        """Put the fence as our own, one epoch further. No other controller can write from then on."""
        for attempt in range(MAX_ATTEMPTS):
            found = await self._read()
            if self._hold is not None and self._is_of_another(found):
                raise fenced_by(found.controller_id, found.epoch)
            self._last_claimed = found.epoch + 1
            claim = layout.encode_fence(self._broker_id, self._last_claimed, 0)
            try:
                await self.store.transact([Put(layout.FENCE, claim, found.version)])
            except (VersionConflict, UnknownOutcome):
                # Claiming once more costs an epoch at most, and is right whether or not the first claim is in.
                await asyncio.sleep(self._retry_delay_s if attempt else 0)
                continue
            self._hold = _Hold(self._broker_id, self._last_claimed, 0, found.version + 1)
            return
        raise StoreAway

    async def check(self) -> None:
        """Read the fence: NoLongerController if another controller has put it, StoreAway if the store is."""
        found = await self._read()
        if found.epoch != self._held().epoch:
            raise fenced_by(found.controller_id, found.epoch)

    def _is_of_another(self, found: _Hold) -> bool:
        """Whether another controller has claimed the store since this one held it."""
        if found.epoch == self._last_claimed:  # ours if the claim came through, whatever became of the answer
            return found.controller_id != self._broker_id
        return found.epoch > self._last_claimed

    async def commit(self, operations: tuple[Operation, ...]) -> None:
        """All of it, once. StoreAway if that cannot be found out: it may be in, or come in until the next claim."""
        held = self._held()
        number = held.transaction + 1
        value = layout.encode_fence(held.controller_id, held.epoch, number)
        for attempt in range(MAX_ATTEMPTS):
            conflict: VersionConflict | None = None
            try:
                await self.store.transact([Put(layout.FENCE, value, held.version), *operations])
                self._hold = replace(held, transaction=number, version=held.version + 1)
                return
            except VersionConflict as problem:
                conflict = problem
            except UnknownOutcome as problem:
                log.warning("the outcome of a metadata change is unknown; looking again", problem=str(problem))
                await asyncio.sleep(self._retry_delay_s if attempt else 0)
            found = await self._read()
            if found.epoch != held.epoch:
                raise fenced_by(found.controller_id, found.epoch)
            if found.transaction == number:
                self._hold = found
                return
            if conflict is not None and found.version == held.version:
                raise AssertionError(f"the image and the store disagree: {conflict}")
        raise StoreAway

    async def retried(self, call: Callable[[], Awaitable[T]]) -> T:
        """For what may be done twice: reads, and preparing the store."""
        return await retried(call, self._retry_delay_s)

    async def _read(self) -> _Hold:
        node = await self.retried(lambda: self.store.get(layout.FENCE))
        assert node is not None, "the fence is made with the store and never deleted"
        fields = layout.decode(node.value)
        return _Hold(BrokerId(fields["controller"]), fields["epoch"], fields["transaction"], node.version)

    def _held(self) -> _Hold:
        assert self._hold is not None, "a controller claims the fence before it decides"
        return self._hold


async def retried(call: Callable[[], Awaitable[T]], retry_delay_s: float) -> T:
    """StoreAway where the store does not answer for a while."""
    reason = ""
    until = time.monotonic() + PATIENCE_S
    for attempt in range(MAX_ATTEMPTS):
        try:
            return await call()
        except UnknownOutcome as problem:
            reason = str(problem)
            if time.monotonic() > until:
                break
            log.warning("the metadata store did not answer; asking again", problem=reason)
            await asyncio.sleep(retry_delay_s if attempt else 0)
    raise StoreAway(f"the metadata store does not answer ({reason})")


def fenced_by(controller_id: int, epoch: int) -> NoLongerController:
    return NoLongerController(f"broker {controller_id} is the controller in epoch {epoch}")
