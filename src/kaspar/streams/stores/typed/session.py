"""Session stores (Kafka's RocksDBSessionStore over segments).

A session belongs to the segment of its end. Sessions of a key are ordered by end, then by start. Sessions that ended
longer ago than the retention are not returned.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

from kaspar.base.named_tuples import new_tuple
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import ByteStore, Row
from kaspar.streams.stores.key_schema import MAX_TIME, SESSION_SUFFIX_SIZE, read_session_suffix, session_suffix
from kaspar.streams.stores.segments import SEGMENT_PREFIX_SIZE, Segments, StreamTime, behind_segment
from kaspar.streams.stores.typed.values import null_key
from kaspar.streams.windows import Window, Windowed

K = TypeVar("K")
V = TypeVar("V")


class SessionStore(Generic[K, V]):
    """Kafka's SessionStore."""

    def __init__(
        self,
        name: str,
        store: ByteStore,
        topic: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        *,
        retention_ms: int,
        time: StreamTime,
    ) -> None:
        """`topic` is the topic that is passed to the serdes: the changelog."""
        self.name = name
        self._store = store
        self._topic = topic
        self._get, self._put = store.get, store.put
        self._write_key = key_serde.serialize
        self._read_key: Callable[[str, bytes], Any] = key_serde.deserialize
        self._write_value = value_serde.serialize
        self._read_value: Callable[[str, bytes], Any] = value_serde.deserialize
        self._segments = Segments(store, retention_ms, time)

    @property
    def expired_records(self) -> int:
        """The number of puts that were ignored because their sessions had expired."""
        return self._segments.expired_records

    def put(self, session: Windowed[K], aggregate: V | None) -> None:
        """Set the aggregate of a session; None removes it. An expired session is ignored."""
        key, (start, end) = session
        raw_key = self._raw_key(key)
        data = self._write_value(self._topic, aggregate)
        prefix = self._segments.to_write(end)
        if prefix is not None:
            self._put(prefix + raw_key + session_suffix(end, start), data)

    def remove(self, session: Windowed[K]) -> None:
        self.put(session, None)

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """The aggregate of the session with exactly this start and end."""
        raw_key = self._raw_key(key)
        prefix = self._segments.to_read(end)
        if prefix is None:
            return None
        data = self._get(prefix + raw_key + session_suffix(end, start))
        return None if data is None else self._read_value(self._topic, data)

    def find_sessions(
        self, key: K, earliest_session_end: int, latest_session_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """The sessions that end at or after `earliest_session_end` and start at or before `latest_session_start`."""
        return self._find(key, earliest_session_end, latest_session_start, reverse=False)

    def backward_find_sessions(
        self, key: K, earliest_session_end: int, latest_session_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        return self._find(key, earliest_session_end, latest_session_start, reverse=True)

    def find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_session_end: int, latest_session_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Like `find_sessions`, for the keys from `key_from` to `key_to`, both inclusive; None means no bound."""
        return self._scan(key_from, key_to, earliest_session_end, latest_session_start, reverse=False)

    def backward_find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_session_end: int, latest_session_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        return self._scan(key_from, key_to, earliest_session_end, latest_session_start, reverse=True)

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions of the key."""
        return self._find(key, 0, MAX_TIME, reverse=False)

    def backward_fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        return self._find(key, 0, MAX_TIME, reverse=True)

    def fetch_range(self, key_from: K | None, key_to: K | None) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions of the keys from `key_from` to `key_to`, both inclusive; None means no bound."""
        return self._scan(key_from, key_to, 0, MAX_TIME, reverse=False)

    def backward_fetch_range(self, key_from: K | None, key_to: K | None) -> Iterator[tuple[Windowed[K], V]]:
        return self._scan(key_from, key_to, 0, MAX_TIME, reverse=True)

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()

    def _raw_key(self, key: K) -> bytes:
        raw_key = self._write_key(self._topic, key)
        if raw_key is None:
            raise null_key(self.name)
        return raw_key

    def _find(self, key: K, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[tuple[Windowed[K], V]]:
        raw_key = self._raw_key(key)
        earliest_end = max(earliest_end, self._segments.first_time)
        first = raw_key + session_suffix(earliest_end, 0)
        last = raw_key + session_suffix(MAX_TIME, MAX_TIME) + b"\x00"
        prefixes = self._segments.between(earliest_end, MAX_TIME, reverse=reverse)
        rows = self._rows([(prefix + first, prefix + last) for prefix in prefixes], reverse)
        # All store keys in this range start with the record key, so those of the right size belong to it.
        size = SEGMENT_PREFIX_SIZE + len(raw_key) + SESSION_SUFFIX_SIZE
        return self._sessions((row for row in rows if len(row[0]) == size), earliest_end, latest_start)

    def _scan(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[tuple[Windowed[K], V]]:
        first = self._write_key(self._topic, key_from) or b""
        last = self._write_key(self._topic, key_to)
        earliest_end = max(earliest_end, self._segments.first_time)
        prefixes = self._segments.between(earliest_end, MAX_TIME, reverse=reverse)
        rows = self._rows([(prefix + first, behind_segment(prefix)) for prefix in prefixes], reverse)
        of_keys = (row for row in rows if _is_within(row[0][SEGMENT_PREFIX_SIZE:-SESSION_SUFFIX_SIZE], first, last))
        return self._sessions(of_keys, earliest_end, latest_start)

    def _rows(self, ranges: list[tuple[bytes, bytes]], reverse: bool) -> Iterator[Row]:
        """The rows of all ranges, which are opened at once, so that they show the same state."""
        return chain.from_iterable([self._store.range(first, last, reverse=reverse) for first, last in ranges])

    def _sessions(self, rows: Iterator[Row], earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed[K], V]]:
        topic = self._topic
        read_key, read_value = self._read_key, self._read_value
        for store_key, data in rows:
            end, start = read_session_suffix(store_key[-SESSION_SUFFIX_SIZE:])
            if end >= earliest_end and start <= latest_start:
                key = read_key(topic, store_key[SEGMENT_PREFIX_SIZE:-SESSION_SUFFIX_SIZE])
                yield new_tuple(Windowed, (key, new_tuple(Window, (start, end)))), read_value(topic, data)


def _is_within(key: bytes, first: bytes, last: bytes | None) -> bool:
    return key >= first and (last is None or key <= last)
