"""Segments: time ranges by which the entries of window and session stores are grouped, so that they expire together.

In a ByteStore, the key of an entry is prefixed with the number of its segment (8 bytes), so that expired segments are
one range of keys at the front. The rules are those of Kafka's AbstractSegments and AbstractRocksDBSegmentedBytesStore:
time is the largest timestamp that the store has seen, a segment expires when all of its entries have expired, and
entries older than the retention are not returned even if their segment has not expired.
"""

import struct
from typing import Final, Protocol

SEGMENT_PREFIX_SIZE = 8
MIN_SEGMENT_INTERVAL_MS = 60_000

segment_prefix: Final = struct.Struct(">q").pack


class StreamTime(Protocol):
    """A number that only increases, and is kept between micro-batches; initially -1."""

    now: int


class SegmentedKeys(Protocol):
    """The part of a ByteStore that expiry needs."""

    def delete_range(self, first: bytes | None, last: bytes | None) -> None: ...


def segment_interval_ms(retention_ms: int) -> int:
    return max(retention_ms // 2, MIN_SEGMENT_INTERVAL_MS)


def behind_segment(prefix: bytes) -> bytes:
    """The first key after those of the segment."""
    return (int.from_bytes(prefix) + 1).to_bytes(SEGMENT_PREFIX_SIZE)


def first_live_prefix(retention_ms: int, now: int) -> bytes | None:
    """The prefix of the first segment that is not expired; None if no segment is expired."""
    segment = (now - retention_ms) // segment_interval_ms(retention_ms)
    return segment_prefix(segment) if segment > 0 else None


class Segments:
    """The live segments of one store."""

    __slots__ = ("_first_live", "_keys", "_time", "expired_records", "interval_ms", "retention_ms")

    def __init__(self, keys: SegmentedKeys, retention_ms: int, time: StreamTime) -> None:
        self.retention_ms = retention_ms
        self.interval_ms = segment_interval_ms(retention_ms)
        self.expired_records = 0
        """The number of entries that were dropped because they had expired before they arrived."""
        self._keys = keys
        self._time = time
        self._first_live = (time.now - retention_ms) // self.interval_ms

    def to_write(self, timestamp: int) -> bytes | None:
        """Advance the stream time, and return the prefix for an entry of this time; None if it has expired."""
        time, interval_ms = self._time, self.interval_ms
        if timestamp > time.now:
            time.now = timestamp
            first_live = (timestamp - self.retention_ms) // interval_ms
            if first_live > self._first_live:
                self._first_live = first_live
                if first_live > 0:
                    self._keys.delete_range(None, segment_prefix(first_live))
        segment = timestamp // interval_ms
        if segment < self._first_live:
            self.expired_records += 1
            return None
        return segment_prefix(segment)

    def to_read(self, timestamp: int) -> bytes | None:
        """The prefix of entries of this time; None if they have expired."""
        if timestamp <= self._time.now - self.retention_ms:
            return None
        return segment_prefix(timestamp // self.interval_ms)

    @property
    def first_time(self) -> int:
        """The start of the retention: earlier entries are not returned."""
        return max(0, self._time.now - self.retention_ms + 1)

    def between(self, first_time: int, last_time: int, *, reverse: bool = False) -> list[bytes]:
        """The prefixes of the segments that may have entries from `first_time` to `last_time`, both inclusive."""
        last_time = min(last_time, self._time.now)
        segments = range(first_time // self.interval_ms, last_time // self.interval_ms + 1)
        return [segment_prefix(segment) for segment in (reversed(segments) if reverse else segments)]
