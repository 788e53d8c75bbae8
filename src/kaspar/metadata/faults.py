"""A store for tests, with the faults of a real one: unknown outcomes, lost sessions, late and merged watches.

A function chooses the faults, so that a test can script them or draw them from a seeded random source.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeVar

from kaspar.metadata.store import Node, Operation, SessionLost, Store, UnknownOutcome, Watcher

T = TypeVar("T")


class Fault(Enum):
    NONE = "none"
    NOT_SENT = "not sent"
    """The call does not happen, and its outcome is unknown to the caller."""
    NO_RESPONSE = "no response"
    """The call happens, and its outcome is unknown to the caller."""
    SESSION_LOST = "session lost"
    """The session ends before the call happens."""
    SESSION_LOST_AFTER = "session lost after"
    """The call happens, and the session ends before the response."""


def no_faults() -> Fault:
    return Fault.NONE


class FaultyStore:
    """Wraps one session. Unless `prompt_watches` is set, watches are held back and merged until `deliver_watches`."""

    def __init__(self, store: Store, choose: Callable[[], Fault] = no_faults, *, prompt_watches: bool = False) -> None:
        self.choose = choose
        self._store = store
        self._prompt_watches = prompt_watches
        self._held: dict[tuple[int, str], Watcher] = {}

    @property
    def is_lost(self) -> bool:
        return self._store.is_lost

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        await self._before_read()
        return await self._store.get(path, self._wrapped(watcher))

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        await self._before_read()
        return await self._store.get_many(paths)

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        await self._before_read()
        return await self._store.children(path, self._wrapped(watcher))

    async def transact(self, operations: Sequence[Operation]) -> None:
        fault = self.choose()
        await self._maybe_lose(fault)
        if fault is Fault.NOT_SENT:
            raise UnknownOutcome("there was no response: the connection was lost before the transaction was sent")
        await self._store.transact(operations)
        if fault is Fault.NO_RESPONSE:
            raise UnknownOutcome("there was no response: the connection was lost after the transaction was sent")
        if fault is Fault.SESSION_LOST_AFTER:
            await self._store.close()
            raise SessionLost("the session was lost after the transaction was sent")

    async def close(self) -> None:
        await self._store.close()

    def deliver_watches(self) -> None:
        """Call the watchers that were held back, once for each watcher and path."""
        held, self._held = self._held, {}
        for (_, path), watcher in held.items():
            watcher(path)

    async def _before_read(self) -> None:
        fault = self.choose()
        await self._maybe_lose(fault)
        if fault is not Fault.NONE:
            raise UnknownOutcome("there was no response: the connection was lost during the read")

    async def _maybe_lose(self, fault: Fault) -> None:
        if fault is Fault.SESSION_LOST:
            await self._store.close()
            raise SessionLost("the session was lost")

    def _wrapped(self, watcher: Watcher | None) -> Watcher | None:
        if watcher is None or self._prompt_watches:
            return watcher

        def hold(path: str) -> None:
            self._held[(id(watcher), path)] = watcher

        return hold
