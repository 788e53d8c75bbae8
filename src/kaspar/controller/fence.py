"""The fence: the node of the store that every transaction of a controller also writes.

It is written on the condition that it has not changed since this controller last wrote it. That one operation fences
older controllers (their condition fails once a newer one has written the fence) and resolves unknown outcomes (the
fence shows whether the transaction was committed). It also keeps the transactions of one controller in order.

The fence is claimed together with the seat, an ephemeral node: no other controller claims the fence while the session
of the seat's owner lives. Brokers that know that the controller's process has ended vacate its seat, on the condition
that the fence has not changed since they read it, so that a controller that is still working keeps its seat.

A controller that claims the fence again after an outage takes the next epoch: a transaction of its earlier epoch that
is still under way is refused from then on, so what is read after the claim is complete.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.metadata.layout import controller_nodes, json_values, store_paths
from kaspar.metadata.layout.controller_nodes import Address
from kaspar.metadata.store import (
    Check,
    Create,
    Delete,
    Operation,
    Put,
    Store,
    StoreError,
    UnknownOutcome,
    VersionConflict,
)

T = TypeVar("T")
log = get_log(__name__)

MAX_ATTEMPTS: Final = 20
PATIENCE_S: Final = 5.0
"""Reads are not retried for longer than this, even after few attempts: each takes long if the store hangs."""


class NoLongerController(Refused):
    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, reason)


class StoreUnavailable(Refused):
    """The store has not responded for a while. Clients see NOT_CONTROLLER, and retry."""

    def __init__(self, reason: str = "the metadata store does not respond") -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, reason)


class StoreDisagrees(AssertionError):
    """A transaction was refused, and not because of the fence: the store differs from the controller's image."""


@dataclass(frozen=True, slots=True)
class _Hold:
    controller_id: BrokerId
    epoch: int
    transaction: int
    version: int


class Fence:
    """One controller's hold on the store."""

    def __init__(
        self, store: Store, broker_id: BrokerId, *, address: Address | None = None, retry_delay_s: float
    ) -> None:
        """`address`: where other brokers reach the controller."""
        self.store = store
        """Replaced when the session is lost."""
        self._broker_id = broker_id
        self._seat = controller_nodes.encode_seat(broker_id, address)
        self._retry_delay_s = retry_delay_s
        self._hold: _Hold | None = None
        self._last_claimed = -1

    @property
    def epoch(self) -> int:
        return self._held().epoch

    async def claim(self) -> None:
        """Take the seat, and write the fence with the next epoch. From then on no other controller can write. Raises
        NoLongerController if another controller has the seat.
        """
        for attempt in range(MAX_ATTEMPTS):
            found = await self._read()
            if self._hold is not None and self._is_of_another(found):
                raise fenced_by(found.controller_id, found.epoch)
            seat = await self.retried(lambda: self.store.get(store_paths.CONTROLLER_SEAT))
            if seat is not None and not seat.is_mine:
                raise fenced_by(controller_nodes.decode_seat(seat.value)[0], found.epoch)
            self._last_claimed = found.epoch + 1
            operations: list[Operation] = [
                Put(
                    store_paths.FENCE,
                    controller_nodes.encode_fence(self._broker_id, self._last_claimed, 0),
                    found.version,
                )
            ]
            if seat is None:
                operations.append(Create(store_paths.CONTROLLER_SEAT, self._seat, ephemeral=True))
            try:
                await self.store.transact(operations)
            except (VersionConflict, UnknownOutcome):
                # Claiming again is correct whether or not this claim was committed, and costs one epoch at most.
                await asyncio.sleep(self._retry_delay_s if attempt else 0)
                continue
            self._hold = _Hold(self._broker_id, self._last_claimed, 0, found.version + 1)
            return
        raise StoreUnavailable

    async def resign(self) -> None:
        """Vacate the seat, with a single attempt. If that fails, others wait until this session ends."""
        with contextlib.suppress(StoreError):
            if self._hold is not None:
                await vacate_seat(self.store, self._hold.version)

    async def pass_on(self, successor: BrokerId | None) -> None:
        """Leave the seat to the successor, or with None to any other broker. The fence records it, and brokers respect
        it for a while (broker/cluster/membership.py). Nothing can be committed afterwards. Raises the same errors as
        `commit`.
        """
        held = self._held()
        passed_on_to = -1 if successor is None else successor
        value = controller_nodes.encode_fence(
            held.controller_id, held.epoch, held.transaction + 1, passed_on_to=passed_on_to
        )
        await self._commit(value, (Delete(store_paths.CONTROLLER_SEAT),))

    async def check(self) -> None:
        """Read the fence. Raises NoLongerController if another controller has claimed it, or StoreUnavailable."""
        found = await self._read()
        if found.epoch != self._held().epoch:
            raise fenced_by(found.controller_id, found.epoch)

    def _is_of_another(self, found: _Hold) -> bool:
        """Whether another controller has claimed the store since this one held it."""
        if found.epoch == self._last_claimed:  # ours if the claim was committed, even if the response was lost
            return found.controller_id != self._broker_id
        return found.epoch > self._last_claimed

    async def commit(self, operations: tuple[Operation, ...]) -> None:
        """Commit the operations atomically and exactly once. Raises StoreUnavailable if the outcome stays unknown: the
        transaction may be committed already, or later, until the next claim.
        """
        held = self._held()
        await self._commit(
            controller_nodes.encode_fence(held.controller_id, held.epoch, held.transaction + 1), operations
        )

    async def _commit(self, value: bytes, operations: tuple[Operation, ...]) -> None:
        held = self._held()
        number = held.transaction + 1
        for attempt in range(MAX_ATTEMPTS):
            conflict: VersionConflict | None = None
            try:
                await self.store.transact([Put(store_paths.FENCE, value, held.version), *operations])
                self._hold = replace(held, transaction=number, version=held.version + 1)
                return
            except VersionConflict as problem:
                conflict = problem
            except UnknownOutcome as problem:
                log.warning("the outcome of a metadata change is unknown; checking again", problem=str(problem))
                await asyncio.sleep(self._retry_delay_s if attempt else 0)
            found = await self._read()
            if found.epoch != held.epoch:
                raise fenced_by(found.controller_id, found.epoch)
            if found.transaction == number:
                self._hold = found
                return
            if conflict is not None and found.version == held.version:
                raise StoreDisagrees(f"the image and the store disagree: {conflict}")
        raise StoreUnavailable

    async def retried(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry a call to the store that is safe to repeat, such as a read."""
        return await retried(call, self._retry_delay_s)

    async def _read(self) -> _Hold:
        node = await self.retried(lambda: self.store.get(store_paths.FENCE))
        assert node is not None, "the fence is created with the store and never deleted"
        fields = json_values.decode(node.value)
        return _Hold(BrokerId(fields["controller"]), fields["epoch"], fields["transaction"], node.version)

    def _held(self) -> _Hold:
        assert self._hold is not None, "a controller claims the fence before it decides"
        return self._hold


async def vacate_seat(store: Store, fence_version: int) -> None:
    """Remove the controller's seat, unless the fence no longer has this version: then a controller is still working."""
    with contextlib.suppress(VersionConflict):
        await store.transact([Check(store_paths.FENCE, fence_version), Delete(store_paths.CONTROLLER_SEAT)])


async def retried(call: Callable[[], Awaitable[T]], retry_delay_s: float) -> T:
    """Retry a call whose outcome is unknown. Raises StoreUnavailable if the store does not respond for a while."""
    reason = ""
    until = time.monotonic() + PATIENCE_S
    for attempt in range(MAX_ATTEMPTS):
        try:
            return await call()
        except UnknownOutcome as problem:
            reason = str(problem)
            if time.monotonic() > until:
                break
            log.warning("the metadata store did not respond; retrying", problem=reason)
            await asyncio.sleep(retry_delay_s if attempt else 0)
    raise StoreUnavailable(f"the metadata store does not respond ({reason})")


def fenced_by(controller_id: int, epoch: int) -> NoLongerController:
    return NoLongerController(f"broker {controller_id} is the controller in epoch {epoch}")
