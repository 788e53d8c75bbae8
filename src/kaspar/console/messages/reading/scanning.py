"""Reads a page: merges partitions by timestamp, applies a filter, and stops within its budget.

A page has the records between two cursors. Older records end at its `low` cursor, newer ones begin at its `high`
cursor, so a page that stopped early can be continued at either. Within a partition records are in the order of offsets.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import heapify, heappop, heapreplace
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.console.messages.reading.batches import State, StoredRecord
from kaspar.console.messages.reading.fetching import TopicLayout, bounds_of, fetch_round, look_up, offsets_at
from kaspar.console.messages.reading.positions import AtOffset, AtTime, Cursor, Direction, End, Position
from kaspar.console.messages.reading.streams import BackwardStream, Bounds, ForwardStream, Stream

_PATIENCE: Final = 5
"""A page that has made no progress may take this many times its budget."""
_DRAINED: Final = 0.1
"""The part of its time budget that a page has to process fetched records, however long the fetch took."""
_FILTERED_OFFSETS: Final = 1000
"""Offsets in the first chunk that is read backward with a filter: most records are not expected to match."""
_LEAST_OFFSETS: Final = 5

Matches = Callable[[StoredRecord], bool]


class Stopped(Enum):
    """The reason why a page ends."""

    FULL = "full"
    END = "end"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Budget:
    found: int
    scanned: int = 1_000_000
    bytes: int = 128 * 1024 * 1024
    found_bytes: int = 32 * 1024 * 1024
    """The maximum bytes of the records that match and are kept."""
    seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Query:
    topic: str
    position: Position
    direction: Direction
    budget: Budget
    partitions: tuple[int, ...] = ()
    """Empty for all partitions."""
    is_committed: bool = False
    """Whether records of aborted and open transactions are omitted, as for a consumer with read_committed."""
    with_markers: bool = False
    until: Cursor | None = None
    """Where reading forward ends: these offsets are not read."""


@dataclass(frozen=True, slots=True)
class Page:
    records: Sequence[StoredRecord]
    """In the order in which they were read: backward, the newest first."""
    low: Cursor
    high: Cursor
    stopped: Stopped
    scanned: int
    scanned_bytes: int
    bounds: Mapping[int, Bounds]
    problems: Mapping[int, str]
    """A sentence for each partition that could not be read."""
    partition_count: int
    """The number of partitions of the topic."""


def read_page(
    client: Client,
    query: Query,
    matches: Matches | None = None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
) -> Page:
    """Without `matches` every record matches. Blocks. Raises Refused and NotThere, and OSError without any broker."""
    layout = look_up(client, query.topic, query.partitions)
    bounds = bounds_of(client, layout, is_committed=query.is_committed)
    starts = _starts(client, layout, query, bounds)
    chunk = _first_chunk(query, len(bounds), is_filtered=matches is not None)
    streams = [_stream(query, partition, each, starts[partition], chunk) for partition, each in bounds.items()]
    began = Cursor({stream.where.partition: stream.position for stream in streams})
    scan = _Scan(client, layout, query, matches, streams, monotonic)
    stopped = scan.run()
    reached = Cursor({stream.where.partition: stream.position for stream in streams})
    low, high = (began, reached) if query.direction is Direction.FORWARD else (reached, began)
    return Page(
        scan.found,
        low,
        high,
        stopped,
        scan.scanned,
        scan.scanned_bytes,
        bounds,
        layout.problems,
        layout.partition_count,
    )


def _starts(client: Client, layout: TopicLayout, query: Query, bounds: Mapping[int, Bounds]) -> dict[int, int]:
    match query.position:
        case End.OLDEST:
            return {partition: each.log_start for partition, each in bounds.items()}
        case End.NEWEST:
            return {partition: each.end for partition, each in bounds.items()}
        case AtOffset(offset):
            return dict.fromkeys(bounds, offset)
        case AtTime(timestamp_ms):
            found = offsets_at(client, layout, timestamp_ms)
            return {
                partition: offset if (offset := found.get(partition, -1)) >= 0 else each.end
                for partition, each in bounds.items()
            }
        case Cursor(offsets):  # a partition that was added since the cursor was created begins at its first record
            return {partition: offsets.get(partition, each.log_start) for partition, each in bounds.items()}


def _first_chunk(query: Query, partitions: int, *, is_filtered: bool) -> int:
    """The number of offsets in each partition's first chunk when reading backward. Later chunks adapt their size."""
    if is_filtered:
        return _FILTERED_OFFSETS
    return query.budget.found if partitions <= 1 else max(_LEAST_OFFSETS, 2 * query.budget.found // partitions)


def _stream(query: Query, partition: int, bounds: Bounds, start: int, chunk: int) -> Stream:
    where = TopicPartition(query.topic, partition)
    start = min(max(start, bounds.log_start), bounds.end)
    if query.direction is Direction.BACKWARD:
        return BackwardStream(where, bounds, start, offsets=chunk)
    if query.until is not None:
        end = min(bounds.end, query.until.offsets.get(partition, 0))
        bounds = Bounds(bounds.log_start, bounds.last_stable, max(start, end))
    return ForwardStream(where, bounds, start)


@dataclass(slots=True)
class _Scan:
    client: Client
    layout: TopicLayout
    query: Query
    matches: Matches | None
    streams: Sequence[Stream]
    monotonic: Callable[[], float]
    found: list[StoredRecord] = field(default_factory=list)
    found_bytes: int = 0
    scanned: int = 0
    scanned_bytes: int = 0
    fetched_bytes: int = 0
    waited: Counter[int] = field(default_factory=Counter)
    """The number of consecutive fetches without records for each partition."""

    def run(self) -> Stopped:
        began_at, seconds = self.monotonic(), self.query.budget.seconds
        began = [each.position for each in self.streams]
        while True:
            is_late = self._fill(began_at, began)
            stopped = self._drain(max(began_at + seconds, self.monotonic() + _DRAINED * seconds))
            if stopped is not None:
                return stopped
            if is_late or self._is_spent():
                return Stopped.BUDGET

    def _fill(self, began_at: float, began: Sequence[int]) -> bool:
        """Fetch until every stream has a record or is at its end. Returns whether the time was up before that."""
        seconds = self.query.budget.seconds
        while waiting := [each for each in self.streams if each.wanted() is not None]:
            passed = self.monotonic() - began_at
            if passed > seconds and (self._has_progressed(began) or passed > seconds * _PATIENCE):
                return True
            # The first partition of a request gets a batch, however large that is.
            waiting.sort(key=lambda stream: -self.waited[stream.where.partition])
            self.fetched_bytes += fetch_round(self.client, self.layout, waiting)
            for stream in waiting:
                partition = stream.where.partition
                self.waited[partition] = self.waited[partition] + 1 if stream.wanted() is not None else 0
        return False

    def _has_progressed(self, began: Sequence[int]) -> bool:
        """Whether the page differs from its start. A page has to make progress, however slow the brokers are."""
        return any(
            stream.head is not None or stream.position != position
            for stream, position in zip(self.streams, began, strict=True)
        )

    def _drain(self, deadline: float) -> Stopped | None:
        """Consume records in the order of time. Returns None when a stream needs a fetch. The clock is checked before
        every record, because a filter may take long for each."""
        sign = 1 if self.query.direction is Direction.FORWARD else -1
        ready = [
            (sign * stream.head.record.timestamp, index)
            for index, stream in enumerate(self.streams)
            if stream.head is not None
        ]
        heapify(ready)
        while ready:
            if self._is_spent() or (self.scanned > 0 and self.monotonic() > deadline):
                return Stopped.BUDGET
            stream = self.streams[ready[0][1]]
            self._consume(stream)
            if self._is_full():
                return Stopped.FULL if self._has_more() else Stopped.END
            if stream.head is not None:
                heapreplace(ready, (sign * stream.head.record.timestamp, ready[0][1]))
            elif stream.wanted() is not None:
                return None
            else:
                heappop(ready)
        return None if self._has_more() else Stopped.END

    def _has_more(self) -> bool:
        return any(each.head is not None or each.wanted() is not None for each in self.streams)

    def _consume(self, stream: Stream) -> None:
        head = stream.head
        assert head is not None
        self.scanned += 1
        self.scanned_bytes += head.size
        if self._is_visible(head) and (self.matches is None or self.matches(head)):
            self.found.append(head)
            self.found_bytes += head.size
        stream.advance()

    def _is_visible(self, record: StoredRecord) -> bool:
        match record.state:
            case State.MARKER:
                return self.query.with_markers
            case State.ABORTED | State.OPEN:
                return not self.query.is_committed
        return True

    def _is_full(self) -> bool:
        budget = self.query.budget
        return len(self.found) >= budget.found or self.found_bytes >= budget.found_bytes

    def _is_spent(self) -> bool:
        """Whether the budget is used up. At least one of the records that were fetched for a page is always used."""
        budget = self.query.budget
        is_spent = max(self.scanned_bytes, self.fetched_bytes) >= budget.bytes
        return self.scanned >= budget.scanned or (self.scanned > 0 and is_spent)
