"""Window stores, plain and with timestamps (Kafka's RocksDBWindowStore over segments).

Entries are ordered by segment, then by the bytes of their keys, then by window start, as in Kafka. Entries older than
the retention are not returned.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar, overload

from kaspar.base.named_tuples import new_tuple
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import ByteStore, Row
from kaspar.streams.stores.key_schema import (
    MAX_SEQUENCE_NUMBER,
    MAX_TIME,
    WINDOW_SUFFIX_SIZE,
    read_window_suffix,
    window_start,
    window_suffix,
)
from kaspar.streams.stores.segments import SEGMENT_PREFIX_SIZE, Segments, StreamTime, behind_segment
from kaspar.streams.stores.typed.values import (
    TIMESTAMP_SIZE,
    ValueAndTimestamp,
    null_key,
    read_timestamp,
    write_timestamp,
)
from kaspar.streams.windows import Window, Windowed

K = TypeVar("K")
V = TypeVar("V")
Stored = TypeVar("Stored")
"""The type of returned values: the value, or a ValueAndTimestamp."""


class _Windows(Generic[K, Stored]):
    """The methods that do not depend on the format of values."""

    def __init__(
        self,
        name: str,
        store: ByteStore,
        topic: str,
        key_serde: Serde[K],
        value_serde: Serde[Any],
        *,
        retention_ms: int,
        window_size_ms: int,
        time: StreamTime,
        sequence: StreamTime | None = None,
    ) -> None:
        """`topic` is the topic that is passed to the serdes: the changelog. With `sequence`, a number that is kept
        between micro-batches, all values of a key and window are retained (retainDuplicates)."""
        self.name = name
        self._store = store
        self._topic = topic
        self._get, self._put = store.get, store.put
        self._write_key = key_serde.serialize
        self._read_key: Callable[[str, bytes], Any] = key_serde.deserialize
        self._write_value = value_serde.serialize
        self._read_value: Callable[[str, bytes], Any] = value_serde.deserialize
        self._time = time
        self._retention_ms = retention_ms
        self._segments = Segments(store, retention_ms, time)
        self._to_write, self._to_read = self._segments.to_write, self._segments.to_read
        self._window_size_ms = window_size_ms
        self._sequence = sequence

    @property
    def expired_records(self) -> int:
        """The number of puts that were ignored because their windows had expired."""
        return self._segments.expired_records

    def _stored(self, data: bytes) -> Stored:
        raise NotImplementedError

    @overload
    def fetch(self, key: K, time: int) -> Stored | None: ...

    @overload
    def fetch(self, key: K, time: int, time_to: int) -> Iterator[tuple[int, Stored]]: ...

    def fetch(self, key: K, time: int, time_to: int | None = None) -> Stored | Iterator[tuple[int, Stored]] | None:
        """The value of the window that starts at `time`; with `time_to`, the starts and values of all windows that
        start from `time` to `time_to`, both inclusive."""
        if time_to is not None:
            return self._fetch(key, time, time_to, reverse=False)
        raw_key = self._write_key(self._topic, key)
        if raw_key is None:
            raise null_key(self.name)
        prefix = self._to_read(time)
        if prefix is None:
            return None
        data = self._get(prefix + raw_key + window_suffix(time, 0))
        return None if data is None else self._stored(data)

    def backward_fetch(self, key: K, time_from: int, time_to: int) -> Iterator[tuple[int, Stored]]:
        """Like `fetch`, in descending order."""
        return self._fetch(key, time_from, time_to, reverse=True)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> Iterator[tuple[Windowed[K], Stored]]:
        """The windows of the keys from `key_from` to `key_to` that start from `time_from` to `time_to`. All bounds are
        inclusive; None means no bound."""
        return self._scan(key_from, key_to, time_from, time_to, reverse=False)

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> Iterator[tuple[Windowed[K], Stored]]:
        return self._scan(key_from, key_to, time_from, time_to, reverse=True)

    def fetch_all(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed[K], Stored]]:
        """All windows that start from `time_from` to `time_to`, both inclusive."""
        return self._scan(None, None, time_from, time_to, reverse=False)

    def backward_fetch_all(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed[K], Stored]]:
        return self._scan(None, None, time_from, time_to, reverse=True)

    def all(self) -> Iterator[tuple[Windowed[K], Stored]]:
        return self._scan(None, None, 0, MAX_TIME, reverse=False)

    def backward_all(self) -> Iterator[tuple[Windowed[K], Stored]]:
        return self._scan(None, None, 0, MAX_TIME, reverse=True)

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()

    def _fetch(self, key: K, time_from: int, time_to: int, *, reverse: bool) -> Iterator[tuple[int, Stored]]:
        raw_key = self._write_key(self._topic, key)
        if raw_key is None:
            raise null_key(self.name)
        time_from = max(time_from, self._segments.first_time)
        if time_to < time_from:
            return iter(())
        first = raw_key + window_suffix(time_from, 0)
        last = raw_key + window_suffix(time_to, MAX_SEQUENCE_NUMBER) + b"\x00"
        prefixes = self._segments.between(time_from, time_to, reverse=reverse)
        rows = self._rows([(prefix + first, prefix + last) for prefix in prefixes], reverse)
        size, stored = SEGMENT_PREFIX_SIZE + len(raw_key) + WINDOW_SUFFIX_SIZE, self._stored
        # All store keys in this range start with the record key, so those of the right size belong to it.
        return ((window_start(store_key), stored(data)) for store_key, data in rows if len(store_key) == size)

    def _scan(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[tuple[Windowed[K], Stored]]:
        first = self._write_key(self._topic, key_from) or b""
        last = self._write_key(self._topic, key_to)
        time_from = max(time_from, self._segments.first_time)
        if time_to < time_from:
            return iter(())
        prefixes = self._segments.between(time_from, time_to, reverse=reverse)
        rows = self._rows([(prefix + first, behind_segment(prefix)) for prefix in prefixes], reverse)
        return self._windowed(rows, first, last, time_from, time_to)

    def _rows(self, ranges: list[tuple[bytes, bytes]], reverse: bool) -> Iterator[Row]:
        """The rows of all ranges, which are opened at once, so that they show the same state."""
        return chain.from_iterable([self._store.range(first, last, reverse=reverse) for first, last in ranges])

    def _windowed(
        self, rows: Iterator[Row], first: bytes, last: bytes | None, time_from: int, time_to: int
    ) -> Iterator[tuple[Windowed[K], Stored]]:
        topic, size = self._topic, self._window_size_ms
        read_key = self._read_key
        for store_key, data in rows:
            raw_key = store_key[SEGMENT_PREFIX_SIZE:-WINDOW_SUFFIX_SIZE]
            start, _ = read_window_suffix(store_key[-WINDOW_SUFFIX_SIZE:])
            if time_from <= start <= time_to and raw_key >= first and (last is None or raw_key <= last):
                yield (
                    Windowed(read_key(topic, raw_key), Window(start, min(start + size, MAX_TIME))),
                    self._stored(data),
                )


class WindowStore(_Windows[K, V]):
    """Kafka's WindowStore."""

    def put(self, key: K, value: V | None, window_start: int) -> None:
        """Set the value of a key and window. None deletes the entry, or is ignored if duplicates are retained. An
        expired entry is ignored."""
        topic = self._topic
        raw_key = self._write_key(topic, key)
        if raw_key is None:
            raise null_key(self.name)
        data = self._write_value(topic, value)
        number = 0
        if self._sequence is not None:
            if data is None:
                return
            number = _next_number(self._sequence)
        prefix = self._to_write(window_start)
        if prefix is not None:
            self._put(prefix + raw_key + window_suffix(window_start, number), data)

    def _stored(self, data: bytes) -> V:
        value: V = self._read_value(self._topic, data)
        return value


class TimestampedWindowStore(_Windows[K, ValueAndTimestamp[V]]):
    """Kafka's TimestampedWindowStore: the store of a windowed table.

    An aggregate reads a window and then replaces it, for every record. `fetch_row` and `put_row` are equivalent to
    `fetch` and `put`, but build the key of the row only once.
    """

    _row_start = -1
    _row_prefix: bytes | None = None
    _row_suffix = b""

    def fetch_row(self, key: K, window_start: int) -> tuple[bytes | None, ValueAndTimestamp[V] | None]:
        """The row of a window, for put_row, and its value. An expired window has no row."""
        topic = self._topic
        raw_key = self._write_key(topic, key)
        if raw_key is None:
            raise null_key(self.name)
        if window_start != self._row_start:  # most records are in the same window as the previous one
            self._row_start = window_start
            self._row_prefix = self._to_write(window_start)
            self._row_suffix = window_suffix(window_start, 0)
        if self._row_prefix is None:
            return None, None
        row = self._row_prefix + raw_key + self._row_suffix
        data = self._get(row)
        if data is None or window_start <= self._time.now - self._retention_ms:
            return row, None
        value = self._read_value(topic, data[TIMESTAMP_SIZE:])
        return row, new_tuple(ValueAndTimestamp, (value, read_timestamp(data)[0]))

    def put_row(self, row: bytes | None, value: V | None, timestamp: int) -> None:
        """Set the value of a row; None deletes it."""
        if row is not None:
            data = self._write_value(self._topic, value)
            self._put(row, None if data is None else write_timestamp(timestamp) + data)

    def put(self, key: K, value: tuple[V | None, int] | None, window_start: int) -> None:
        """Set the value of a key and window to any pair of value and timestamp. None, or a pair with the value None,
        deletes it (ValueAndTimestamp.make)."""
        topic = self._topic
        raw_key = self._write_key(topic, key)
        if raw_key is None:
            raise null_key(self.name)
        data = None
        if value is not None:
            data = self._write_value(topic, value[0])
            if data is not None:
                data = write_timestamp(value[1]) + data
        number = 0
        if self._sequence is not None:
            if data is None:
                return
            number = _next_number(self._sequence)
        prefix = self._to_write(window_start)
        if prefix is not None:
            self._put(prefix + raw_key + window_suffix(window_start, number), data)

    def _stored(self, data: bytes) -> ValueAndTimestamp[V]:
        value = self._read_value(self._topic, data[TIMESTAMP_SIZE:])
        return new_tuple(ValueAndTimestamp, (value, read_timestamp(data)[0]))


def _next_number(sequence: StreamTime) -> int:
    sequence.now = max(sequence.now, 0) + 1
    return sequence.now & MAX_SEQUENCE_NUMBER
