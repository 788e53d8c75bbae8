"""The leader's writes: decided one after the other, and written in groups.

A transaction is slow, so writes that arrive during one are written together by the next. Within a group, each write is
decided on a fork of the state into which the records of earlier writes were replayed. The fork is private to the group.

A decision that depends on records of its group completes when they have been read back, and fails if they cannot be
written. This also holds for errors, and for a schema that an earlier write of the group registers.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from kaspar.registry.decisions.decision import Decision
from kaspar.registry.interfaces import (
    Leadership,
    LogRecord,
    NotLeader,
    RecordTooLarge,
    SchemaLog,
    StoreFailed,
    StoreTimeout,
)
from kaspar.registry.state import State

T = TypeVar("T")

Decide = Callable[[State], Awaitable[Decision[T]]]

_MAX_DECISIONS: Final = 64
"""A limit is needed because decisions on small schemas do not yield to other tasks."""
_MAX_BYTES: Final = 256 * 1024
"""A group is full once it has this size, which is far below the brokers' default limit."""


class _Write:
    def __init__(self, decide: Decide[Any]) -> None:
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._decide = decide
        self._decided: Decision[Any] | Exception = StoreFailed("not decided yet")

    async def decide(self, state: State) -> tuple[LogRecord, ...]:
        """Decide, and return the records to write. An exception of `decide` is the outcome of this write only."""
        try:
            self._decided = await self._decide(state)
        except Exception as problem:
            self._decided = problem
            return ()
        return self._decided.records

    def complete(self) -> None:
        if isinstance(self._decided, Exception):
            self.fail(self._decided)
        elif not self.outcome.done():
            self.outcome.set_result(self._decided.reply)

    def fail(self, problem: Exception) -> None:
        if not self.outcome.done():  # the caller may have been cancelled
            self.outcome.set_exception(problem)


class _Group:
    """The writes of one transaction."""

    def __init__(self, committed: State) -> None:
        self._committed = committed
        self._state = committed
        self._decisions = 0
        self._bytes = 0
        self._unseen: tuple[LogRecord, ...] = ()
        """The records of the last decision, which are replayed before the next one."""
        self.records: list[LogRecord] = []
        self.writes: list[_Write] = []

    @property
    def is_full(self) -> bool:
        return self._decisions >= _MAX_DECISIONS or self._bytes >= _MAX_BYTES

    async def add(self, write: _Write) -> None:
        self.writes.append(write)
        self._decisions += 1
        self._unseen = await write.decide(self._pending_state())
        self._bytes += sum(len(key) + len(value or b"") for key, value in self._unseen)
        self.records += self._unseen
        if not self.records:  # decided on committed records only
            self.writes.remove(write)
            write.complete()

    def _pending_state(self) -> State:
        """The state including all records of the group."""
        if self._unseen and self._state is self._committed:
            self._state = self._committed.fork()
        for key, value in self._unseen:
            self._state.replay(key, value, offset=-1, timestamp_ms=0)
        return self._state

    def complete(self) -> None:
        for write in self.writes:
            write.complete()

    def fail(self, problem: Exception) -> None:
        for write in self.writes:
            write.fail(problem)


class GroupCommit:
    def __init__(self, state: State, schema_log: SchemaLog, leadership: Leadership) -> None:
        self._state = state
        self._log = schema_log
        self._leadership = leadership
        self._waiting: deque[_Write] = deque()
        self._one_by_one = 0
        """The number of next writes that must be written alone."""
        self._task: asyncio.Task[None] | None = None

    async def write(self, decide: Decide[T]) -> T:
        """Decide on the leader, and return the reply once the records have been replayed into the state. Raises the
        exceptions of `decide`, NotLeader, StoreTimeout and StoreFailed."""
        if not self._leadership.is_leader:
            raise NotLeader("this instance is not the leader")
        write = _Write(decide)
        self._waiting.append(write)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work(), name="registry group commit")
        reply: T = await write.outcome
        return reply

    async def _work(self) -> None:
        """Write groups until no write is waiting."""
        try:
            while self._waiting:
                await self._write_group()
        except asyncio.CancelledError:
            self._fail_waiting(StoreFailed("the registry is shutting down"))
            raise

    async def _write_group(self) -> None:
        try:
            await self._leadership.ready()
        except Exception as problem:
            self._fail_waiting(problem)
            return
        group = _Group(self._state)
        try:
            await self._fill(group)
            if group.records:
                await self._log.append(group.records)
        except RecordTooLarge as problem:
            self._split(group, problem)
        except Exception as problem:
            group.fail(problem)
        except asyncio.CancelledError:
            group.fail(StoreTimeout("the registry is shutting down"))
            raise
        else:
            group.complete()

    async def _fill(self, group: _Group) -> None:
        while self._waiting and not group.is_full:
            write = self._waiting.popleft()
            if not write.outcome.done():  # the caller may have been cancelled
                await group.add(write)
            if self._one_by_one:
                self._one_by_one -= 1
                return

    def _split(self, group: _Group, problem: RecordTooLarge) -> None:
        """Retry the writes one by one. Nothing was written, and those that are small enough must not fail with the
        others."""
        if len(group.writes) == 1:
            group.fail(problem)
            return
        self._waiting.extendleft(reversed(group.writes))
        self._one_by_one = len(group.writes)

    def _fail_waiting(self, problem: Exception) -> None:
        while self._waiting:
            self._waiting.popleft().fail(problem)
        self._one_by_one = 0
