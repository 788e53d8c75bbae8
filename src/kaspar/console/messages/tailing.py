"""Follows the end of topics. Pages that follow the same topic with the same identity and filter share one `Tail`.

A tail polls twice a second and shows at most as many records as a person can read. The rest is dropped evenly and
counted. A poll has a small budget, and jumps to the end if it was not enough.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.callers.identities import Identity
from kaspar.client.admin.session import Admin
from kaspar.client.cluster import Client
from kaspar.console.messages.filters import Filter
from kaspar.console.messages.reading.batches import StoredRecord
from kaspar.console.messages.reading.positions import Cursor, Direction, End
from kaspar.console.messages.reading.scanning import Budget, Page, Query, Stopped, read_page
from kaspar.console.messages.views import Decoding, RecordView
from kaspar.console.problems import Conflict, NotThere

log = get_log(__name__)

POLL_S: Final = 0.5
SHOWN_PER_SECOND: Final = 50
_SHOWN_PER_POLL: Final = int(SHOWN_PER_SECOND * POLL_S)
_POLL_BUDGET: Final = Budget(
    found=5_000, scanned=50_000, bytes=8 * 1024 * 1024, found_bytes=4 * 1024 * 1024, seconds=0.2
)
_WAITING_EVENTS: Final = 20
"""The maximum number of events that wait for a slow page; older ones are dropped."""
_MOST_BACKOFF_S: Final = 5.0
MAX_TAILS: Final = 100
MAX_FOLLOWERS: Final = 200
"""The maximum number of pages that follow topics, since each of them has a request that does not end."""
_POLLS_AT_A_TIME: Final = 4
"""The maximum number of concurrent polls of all tails, which run in the same threads as all other calls."""


@dataclass(frozen=True, slots=True)
class TailKey:
    """The properties that pages must have in common to share a tail."""

    identity: Identity
    topic: str
    partitions: tuple[int, ...] = ()
    filter: str = ""
    is_committed: bool = False
    key_format: str = "auto"
    value_format: str = "auto"


@dataclass(frozen=True, slots=True)
class TailEvent:
    records: tuple[dict[str, Any], ...]
    """Rows for the page, oldest first."""
    appended: int
    """The number of offsets that were appended to the topic since the last event."""
    matched: int
    skipped: int
    """The number of records that were not read."""
    seconds: float
    problem: str | None = None


Call = Callable[[Identity, Callable[[Admin], TailEvent]], Awaitable[TailEvent]]
"""The type of `AdminSessions.call`."""


class TailReader:
    """The state of a tail between polls. Polls block."""

    def __init__(self, key: TailKey, decoding: Decoding, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Raises FilterError."""
        self._key = key
        self._decoding = decoding
        self._monotonic = monotonic
        self._position: Cursor | None = None
        self._polled_at = monotonic()
        self._filter = Filter(key.filter, now_ms=int(time.time() * 1000))

    def poll(self, client: Client) -> TailEvent:
        """Read what was appended since the last poll; the first finds the end. Raises Refused, NotThere and OSError."""
        position = self._position
        page = self._read(client, End.NEWEST if position is None else position)
        now = self._monotonic()
        seconds, self._polled_at = now - self._polled_at, now
        ends = Cursor({partition: bounds.end for partition, bounds in page.bounds.items()})
        appended = 0 if position is None else _distance(position, ends)
        skipped = 0 if page.stopped is Stopped.END else _distance(page.high, ends)
        # A partition that cannot be read now keeps its position.
        self._position = Cursor({**({} if position is None else position.offsets), **ends.offsets})
        shown = _sample(page.records, _SHOWN_PER_POLL)
        rows = tuple(RecordView(each, self._decoding).row() for each in shown)
        problem = next((f"Partition {number}: {text}." for number, text in sorted(page.problems.items())), None)
        return TailEvent(rows, appended, len(page.records), skipped, seconds, problem)

    def _read(self, client: Client, position: Cursor | End) -> Page:
        key, filter_ = self._key, self._filter
        query = Query(
            key.topic, position, Direction.FORWARD, _POLL_BUDGET, key.partitions, is_committed=key.is_committed
        )
        if filter_.passes_all:
            return read_page(client, query)
        return read_page(client, query, lambda stored: filter_.matches(RecordView(stored, self._decoding)))


class Tails:
    """The tails of all pages."""

    def __init__(self, call: Call, decoding_of: Callable[[TailKey], Decoding]) -> None:
        self._call = call
        self._decoding_of = decoding_of
        self._tails: dict[TailKey, _Tail] = {}
        self._polls = asyncio.Semaphore(_POLLS_AT_A_TIME)

    @property
    def has_room(self) -> bool:
        """Whether one more page can follow."""
        return sum(len(each.queues) for each in self._tails.values()) < MAX_FOLLOWERS

    @contextlib.asynccontextmanager
    async def follow(self, key: TailKey) -> AsyncIterator[AsyncIterator[TailEvent]]:
        """Events until the context ends. Raises FilterError, and Conflict if there are too many pages or tails."""
        if not self.has_room:
            raise Conflict(f"{MAX_FOLLOWERS} pages are already following topics.")
        tail = self._tails.get(key)
        if tail is None:
            if len(self._tails) >= MAX_TAILS:
                raise Conflict(f"{MAX_TAILS} topics are already being followed.")
            tail = self._tails[key] = _Tail(key, TailReader(key, self._decoding_of(key)), self._poll)
        queue: asyncio.Queue[TailEvent] = asyncio.Queue(_WAITING_EVENTS)
        tail.queues.add(queue)
        try:
            yield _events(queue)
        finally:
            tail.queues.discard(queue)
            if not tail.queues:
                self._tails.pop(key, None)
                await tail.stop()

    async def _poll(self, identity: Identity, function: Callable[[Admin], TailEvent]) -> TailEvent:
        async with self._polls:
            return await self._call(identity, function)


class _Tail:
    def __init__(self, key: TailKey, reader: TailReader, call: Call) -> None:
        self.queues: set[asyncio.Queue[TailEvent]] = set()
        self._key = key
        self._reader = reader
        self._call = call
        self._task = asyncio.create_task(self._run(), name=f"tail of {key.topic}")

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pause_s = POLL_S
        while True:
            try:
                event = await self._call(self._key.identity, lambda admin: self._reader.poll(admin.client))
                pause_s = POLL_S
            except NotThere as gone:
                event = TailEvent((), 0, 0, 0, 0.0, str(gone))
                pause_s = _MOST_BACKOFF_S
            except (KasparError, OSError) as problem:  # an unreachable broker may come back
                event = TailEvent((), 0, 0, 0, 0.0, str(problem))
                pause_s = min(_MOST_BACKOFF_S, pause_s * 2)
            except Exception:
                log.exception(f"following {self._key.topic} failed")
                event = TailEvent((), 0, 0, 0, 0.0, "Internal error; see the console's log.")
                pause_s = _MOST_BACKOFF_S
            for queue in self.queues:
                if queue.full():
                    queue.get_nowait()
                queue.put_nowait(event)
            await asyncio.sleep(pause_s)


async def _events(queue: asyncio.Queue[TailEvent]) -> AsyncIterator[TailEvent]:
    while True:
        yield await queue.get()


def _distance(low: Cursor, high: Cursor) -> int:
    return sum(max(0, end - low.offsets.get(partition, 0)) for partition, end in high.offsets.items())


def _sample(records: Sequence[StoredRecord], most: int) -> Sequence[StoredRecord]:
    """At most `most` of the records, evenly distributed, with the newest one."""
    if len(records) <= most:
        return records
    return [records[(index + 1) * len(records) // most - 1] for index in range(most)]
