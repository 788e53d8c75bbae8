"""Writing `_schemas` as the leader: fence the predecessor, read what it wrote, then write and read back.

A leader decides on its state, so its state must be complete whenever it decides. Therefore:

- A new leader first initializes the producer, which fences its predecessor, and writes a NOOP record. When that record
  is read back, so is everything before it. Only then is the leader ready.
- From the start of a write, it is not ready until the outcome of the write is known and part of the state, however long
  the caller waits. If the outcome is unknown because a response was lost, the producer is renewed, which ends the
  transaction either way; then the reader either sees the record or not.
- The records of an aborted transaction are overwritten, key by key. Readers that ignore transactions, such as
  Confluent's registry, would take them as valid.
- Decisions of one term are not written in another, because other leaders may have written in between.
- A fenced leader steps down. It never re-initializes the producer by itself, because that would fence the next leader:
  the group must elect it again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.log import get_log
from kaspar.registry.interfaces import LogRecord, NotLeader, RecordTooLarge, StoreFailed, StoreTimeout
from kaspar.registry.log.position import LogPosition, LogReplaced
from kaspar.registry.log.producer import Fenced

log = get_log(__name__)

_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_BACKOFF_S: Final = 0.1
_NO_LEADER: Final = "this instance is not the leader"


class Reader(Protocol):
    """Reads back what was written: kaspar.registry.log.follower.LogFollower."""

    @property
    def position(self) -> LogPosition | None: ...

    @property
    def problem(self) -> str | None: ...

    def watch(self, offset: int) -> "asyncio.Future[bool]": ...

    async def superseding(self) -> list[LogRecord]: ...


class Producer(Protocol):
    """kaspar.registry.log.producer.TransactionalProducer."""

    async def take_over(self) -> None: ...

    async def renew(self) -> None: ...

    async def send(self, records: Sequence[LogRecord], topic_id: UUID) -> int: ...

    async def commit(self) -> None: ...


class LogWriter:
    def __init__(
        self,
        reader: Reader,
        producer: Producer,
        noop: LogRecord,
        *,
        timeout_s: float,
        on_fenced: Callable[[], None],
    ) -> None:
        """`noop` is a record that has no effect. `timeout_s` is how long a caller waits."""
        self._reader = reader
        self._producer = producer
        self._noop = noop
        self._timeout_s = timeout_s
        self._on_fenced = on_fenced
        self._is_leading = False
        self._term = 0
        self._decided_in = 0
        """The term of the last `ready`. Groups of decisions do not overlap, so it is also that of the next `append`."""
        self._settled = asyncio.Event()
        """Set while nothing is in progress: a leader's state then has everything that it and its predecessors wrote."""
        self._settled.set()
        self._work: asyncio.Task[None] | None = None

    # --- Leading ------------------------------------------------------------------------------------------------------

    @property
    def is_leading(self) -> bool:
        return self._is_leading

    def lead(self) -> None:
        """Called when the group has elected this instance."""
        self._is_leading = True
        self._term += 1
        self._settled.clear()
        self._start(self._establish(self._term, self._work, takes_over=True))

    def step_down(self) -> None:
        """Called when the group has elected another instance, or this one has left the group."""
        self._is_leading = False
        self._settled.set()

    async def settled(self) -> None:
        """Return once nothing is in progress, or at once if this instance is not leading."""
        await self._settled.wait()

    async def ready(self) -> None:
        """Raises NotLeader or StoreTimeout."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._settled.wait()
        except TimeoutError:
            raise StoreTimeout("the leader is waiting for the log: " + self._why()) from None
        if not self._is_leading:
            raise NotLeader(_NO_LEADER)
        self._decided_in = self._term

    async def close(self) -> None:
        """Cancel work in progress. The broker aborts its transaction when the next leader takes over."""
        self.step_down()
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def append(self, records: Sequence[LogRecord]) -> None:
        """Write records that were decided since the last `ready`, and return once they have been replayed. Raises
        NotLeader, StoreTimeout or StoreFailed."""
        if not self._is_leading:
            raise NotLeader(_NO_LEADER)
        if self._decided_in != self._term:
            raise NotLeader("this instance lost the leadership and regained it since the decision")
        if not self._settled.is_set():
            raise StoreTimeout("the outcome of an earlier write is not known yet: " + self._why())
        self._settled.clear()
        work = self._start(self._transact(records, self._term))
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.shield(work)
        except TimeoutError:
            raise StoreTimeout(f"the records were not read back within {self._timeout_s:g} s: {self._why()}") from None

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._work = asyncio.get_running_loop().create_task(work, name="registry writer")
        self._work.add_done_callback(_retrieve)
        return self._work

    async def _transact(self, records: Sequence[LogRecord], term: int) -> None:
        """Afterwards the writer is settled, or a task that settles it has been started."""
        try:
            await self._commit(records, term)
        except Fenced as fenced:
            self._deposed(fenced, term)
            raise NotLeader("another instance has become the leader") from fenced
        except Exception:
            if term == self._term:
                self._start(self._establish(term, None, takes_over=False))
            raise
        if term == self._term:
            self._settled.set()

    async def _establish(self, term: int, before: "asyncio.Task[None] | None", *, takes_over: bool) -> None:
        """Make this instance ready to write, retrying until the brokers allow it. First waits until `before` has
        ended."""
        if before is not None:
            await asyncio.wait([before])
        reported = None
        while self._is_leading and term == self._term:
            try:
                if takes_over:
                    await self._producer.take_over()
                    takes_over = False
                else:
                    await self._producer.renew()
                await self._commit([self._noop], term)
                while superseding := await self._reader.superseding():
                    await self._commit(superseding, term)
            except Fenced as fenced:
                self._deposed(fenced, term)
                return
            except (OSError, KasparError, LogReplaced) as problem:
                if str(problem) != reported:
                    reported = str(problem)
                    log.warning("the leader is not ready to write", why=problem)
                await asyncio.sleep(_BACKOFF_S)
            except Exception:
                log.exception("unexpected error while becoming ready to write; continuing")
                await asyncio.sleep(_BACKOFF_S)
            else:
                self._established(term)
                return

    def _established(self, term: int) -> None:
        if self._is_leading and term == self._term:
            log.info("the leader is ready to write", term=term)
            self._settled.set()

    async def _commit(self, records: Sequence[LogRecord], term: int) -> None:
        """Write one transaction and read it back. Raises Fenced and StoreFailed if nothing was written."""
        position = self._reader.position
        if position is None:
            raise StoreFailed(f"the log cannot be read: {self._why()}")
        try:
            last_offset = await self._producer.send(records, position.topic_id)
        except Refused as refused:
            kind = RecordTooLarge if refused.code in _TOO_LARGE else StoreFailed
            raise kind(f"the broker rejected the records: {refused}") from refused
        except OSError as problem:
            raise StoreFailed(f"the records could not be sent: {problem}") from problem
        outcome = self._reader.watch(last_offset)
        try:
            await self._producer.commit()
        except (OSError, KasparError) as problem:
            await self._find_out(outcome, problem, term)
            return
        if not await _outcome(outcome):
            raise StoreFailed("the transaction was aborted")

    async def _find_out(self, outcome: "asyncio.Future[bool]", problem: Exception, term: int) -> None:
        """Find out the outcome of a commit whose response was lost, or was the error of a retry after a first attempt
        that succeeded."""
        while not isinstance(problem, Fenced):
            try:
                await self._producer.renew()
                break
            except (OSError, KasparError) as next_problem:
                if isinstance(next_problem, Refused):
                    log.warning("the outcome of a transaction is unknown", why=next_problem)
                problem = next_problem
                await asyncio.sleep(_BACKOFF_S)
        # The producer that fenced this one has ended its transaction.
        if not await _outcome(outcome):
            if isinstance(problem, Fenced):
                raise problem
            raise StoreFailed(f"the transaction was aborted: {problem}")
        if isinstance(problem, Fenced):
            self._deposed(problem, term)

    def _deposed(self, fenced: Fenced, term: int) -> None:
        if term != self._term or not self._is_leading:
            return
        log.warning("another instance writes the schemas: this one is no longer the leader", why=fenced)
        self.step_down()
        self._on_fenced()

    def _why(self) -> str:
        return self._reader.problem or "the broker is slow"


async def _outcome(outcome: "asyncio.Future[bool]") -> bool:
    try:
        return await outcome
    except LogReplaced as replaced:
        raise StoreFailed(f"the log was replaced: {replaced}") from replaced


def _retrieve(work: "asyncio.Task[None]") -> None:
    """Mark the exception as retrieved, because the caller may have been cancelled: asyncio would report it as lost."""
    if not work.cancelled():
        work.exception()
