"""A partition as a stream of records, forward or backward, without I/O. A stream says what to fetch next, and is given
the response.

Brokers send records forward only. To read backward, a stream reads a chunk of offsets that ends at its position, and
returns its records in reverse. The number of offsets in a chunk depends on the size of records, and on how many of the
offsets have records at all: a compacted partition has gaps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from kaspar.base.ids import TopicPartition
from kaspar.console.messages.reading.batches import StoredRecord, stored_records
from kaspar.records.column_reading import offset_behind

CHUNK_BYTES: Final = 1 << 20
"""The desired bytes of a chunk that is read backward."""
_MOST_CHUNK_BYTES: Final = 4 * CHUNK_BYTES
_KEPT_BYTES: Final = 16 * CHUNK_BYTES
"""The maximum bytes of a chunk's records after decompression, which may be many more than those of its batches."""
_MOST_OFFSETS: Final = 100_000
_EMPTY_RESPONSES: Final = 2
"""After this many empty responses, there are no records up to the end: the last ones were removed by compaction."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets of a partition when a page begins. Offsets below `end` are read."""

    log_start: int
    last_stable: int
    end: int


class Fetched(NamedTuple):
    """A partition's part of a fetch response."""

    batches: memoryview
    aborted: tuple[tuple[int, int], ...]
    was_first: bool
    """Whether the partition was the first in the request: then there is at least one batch, if the log has one."""


class Stream(Protocol):
    @property
    def where(self) -> TopicPartition: ...
    @property
    def bounds(self) -> Bounds: ...

    @property
    def head(self) -> StoredRecord | None:
        """The next record; None if something has to be fetched first, or the stream is at its end."""

    @property
    def position(self) -> int:
        """Where the next page continues: forward, the first offset not consumed; backward, the last one consumed."""

    def wanted(self) -> int | None:
        """The offset to fetch from, if a fetch is needed."""

    def give(self, fetched: Fetched) -> None:
        """Process a response. Raises MalformedBytes."""

    def advance(self) -> None:
        """Consume the head."""

    def stop(self) -> None:
        """Stop reading on this page. The position does not change."""


class ForwardStream:
    def __init__(self, where: TopicPartition, bounds: Bounds, start: int) -> None:
        self.where = where
        self.bounds = bounds
        self.head: StoredRecord | None = None
        self.position = max(bounds.log_start, start)
        self._records: Iterator[StoredRecord] = iter(())
        self._read_to = self.position  # everything below this offset was fetched
        self._empty_responses = 0

    def wanted(self) -> int | None:
        return self._read_to if self.head is None and self._read_to < self.bounds.end else None

    def give(self, fetched: Fetched) -> None:
        behind = offset_behind(fetched.batches)
        if behind is None or behind <= self._read_to:
            self._empty_responses += fetched.was_first
            if self._empty_responses >= _EMPTY_RESPONSES:
                self._read_to = self.position = self.bounds.end
            return
        self._empty_responses = 0
        until = min(behind, self.bounds.end)
        self._records = stored_records(
            self.where,
            fetched.batches,
            fetched.aborted,
            start=self._read_to,
            until=until,
            last_stable_offset=self.bounds.last_stable,
        )
        self._read_to = until
        self._next()

    def advance(self) -> None:
        assert self.head is not None
        self.position = self.head.offset + 1
        self._next()

    def _next(self) -> None:
        self.head = next(self._records, None)
        if self.head is None:
            self.position = max(self.position, self._read_to)

    def stop(self) -> None:
        self._records, self.head = iter(()), None
        self._read_to = self.bounds.end


class BackwardStream:
    def __init__(self, where: TopicPartition, bounds: Bounds, start: int, *, offsets: int) -> None:
        """`offsets` is the number of offsets in the first chunk."""
        self.where = where
        self.bounds = bounds
        self.position = min(bounds.end, start)
        self._found: list[StoredRecord] = []
        self._offsets = max(1, offsets)
        self._chunk = _Chunk(self.position, self.position, self.position)
        self._empty_responses = 0
        self._is_stopped = False

    @property
    def head(self) -> StoredRecord | None:
        return self._found[-1] if self._found and self._chunk.is_complete else None

    def wanted(self) -> int | None:
        if self.head is not None or self.position <= self.bounds.log_start or self._is_stopped:
            return None
        if self._chunk.is_complete:
            start = max(self.bounds.log_start, self.position - self._offsets)
            self._chunk = _Chunk(start, start, self.position)
        return self._chunk.read_to

    def give(self, fetched: Fetched) -> None:
        chunk = self._chunk
        behind = offset_behind(fetched.batches)
        if behind is None or behind <= chunk.read_to:
            self._empty_responses += fetched.was_first
            if self._empty_responses < _EMPTY_RESPONSES:
                return
            behind = chunk.end
        self._empty_responses = 0
        until = min(behind, chunk.end)
        average = len(fetched.batches) / max(1, behind - chunk.read_to)
        self._take(fetched, chunk.read_to, until)
        chunk = replace(self._chunk, read_to=until)
        if not chunk.is_complete and (chunk.end - until) * average > _MOST_CHUNK_BYTES:
            # Records are larger than expected: skip those that are farther from the end of the chunk.
            start = max(until, chunk.end - max(1, int(CHUNK_BYTES / average)))
            if start > until:
                self._found.clear()
                chunk = _Chunk(start, start, chunk.end)
        self._chunk = chunk
        if chunk.is_complete:
            self._completed(average)

    def advance(self) -> None:
        self.position = self._found.pop().offset
        if not self._found:
            self.position = self._chunk.start

    def _take(self, fetched: Fetched, start: int, until: int) -> None:
        kept = sum(each.size for each in self._found)
        for each in stored_records(
            self.where,
            fetched.batches,
            fetched.aborted,
            start=start,
            until=until,
            last_stable_offset=self.bounds.last_stable,
        ):
            self._found.append(each)
            kept += each.size
            while kept > _KEPT_BYTES and len(self._found) > 1:
                dropped = self._found.pop(0)
                kept -= dropped.size
                self._chunk = replace(self._chunk, start=dropped.offset + 1)

    def _completed(self, average_bytes: float) -> None:
        if not self._found:  # a gap: the next chunk is larger
            self.position = self._chunk.start
            self._offsets = min(_MOST_OFFSETS, self._offsets * 4)
        elif average_bytes:
            self._offsets = max(1, min(_MOST_OFFSETS, self._offsets * 2, int(CHUNK_BYTES / average_bytes)))

    def stop(self) -> None:
        self._found.clear()
        self._is_stopped = True


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The offsets from `start` to below `end`; those below `read_to` were read."""

    start: int
    read_to: int
    end: int

    @property
    def is_complete(self) -> bool:
        return self.read_to >= self.end
