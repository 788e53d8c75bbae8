"""A store whose entries are removed in the order of their times: the buffer of a suppression.

In the ByteStore, an entry's key is its time (8 bytes) followed by its own key, so entries of the same time are ordered
by the bytes of their keys, as in Kafka's InMemoryTimeOrderedKeyValueChangeBuffer. Other rows are distinguished by their
first byte: the time of a key, if it does not follow from the key itself, and the totals. The changelog has the same
rows; only Kaspar reads it.

Finding the first entry requires no scan: the rows that existed when the task began are read lazily, in order, and the
rows that the task adds are in a heap. Both may contain entries that were removed since, which are skipped.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import ByteStore, Row
from kaspar.streams.stores.kinds import COMPACTED
from kaspar.streams.stores.spec import ChangelogRecord, StoreContext, StoreKind, StoreSpec

_ENTRY, _BEHIND_ENTRIES, _TIME_OF, _TOTALS = b"e", b"f", b"k", b"t"
_TIME: Final = struct.Struct(">q")
_TWO: Final = struct.Struct(">qq")
_KEY_AT = 1 + _TIME.size


class Totals(NamedTuple):
    """The number of entries, and the sum of their sizes."""

    records: int = 0
    size: int = 0


class TimeOrderedStore:
    """Entries by time and serialized key. The operators convert keys and values with the serdes."""

    def __init__(self, name: str, store: ByteStore, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> None:
        """`topic` is the topic that is passed to the serdes: the changelog."""
        self.name = name
        self.topic = topic
        self.key_serde = key_serde
        self.value_serde = value_serde
        self._store = store
        self._get, self._put = store.get, store.put
        self._added: list[bytes] = []
        self._rows: Iterator[Row] = store.range(_ENTRY, _BEHIND_ENTRIES)
        self._next: bytes | None = None
        """The row that was read last, and is not known to be removed."""
        self._has_rows = True

    def get(self, time: int, key: bytes) -> bytes | None:
        return self._get(_ENTRY + _TIME.pack(time) + key)

    def put(self, time: int, key: bytes, value: bytes, *, is_new: bool) -> None:
        """Put an entry. `is_new`: it does not replace an existing one, which the caller has looked up."""
        row = _ENTRY + _TIME.pack(time) + key
        if is_new:
            heappush(self._added, row)
        self._put(row, value)

    def remove(self, time: int, key: bytes) -> None:
        self._put(_ENTRY + _TIME.pack(time) + key, None)

    def first(self) -> tuple[int, bytes] | None:
        """Time and key of the earliest entry."""
        added, get = self._added, self._get
        while added and get(added[0]) is None:
            heappop(added)
        stored = self._first_stored()
        row = min(added[0], stored) if added and stored else added[0] if added else stored
        return None if row is None else (_TIME.unpack_from(row, 1)[0], row[_KEY_AT:])

    def _first_stored(self) -> bytes | None:
        """The first entry that existed when the task began and still exists."""
        while self._has_rows and (self._next is None or self._get(self._next) is None):
            row = next(self._rows, None)
            self._next, self._has_rows = (None, False) if row is None else (row[0], True)
        return self._next

    def entries(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Time, key and value of all entries, in order."""
        for row, value in self._store.range(_ENTRY, _BEHIND_ENTRIES):
            yield _TIME.unpack_from(row, 1)[0], row[_KEY_AT:], value

    def time_of(self, key: bytes) -> int | None:
        """The time that was set for a key."""
        data = self._get(_TIME_OF + key)
        if data is None:
            return None
        time: int = _TIME.unpack(data)[0]
        return time

    def set_time_of(self, key: bytes, time: int | None) -> None:
        self._put(_TIME_OF + key, None if time is None else _TIME.pack(time))

    def totals(self) -> Totals | None:
        """The totals that were set last, if any."""
        data = self._get(_TOTALS)
        return None if data is None else Totals(*_TWO.unpack(data))

    def set_totals(self, totals: Totals | None) -> None:
        self._put(_TOTALS, None if totals is None else _TWO.pack(*totals))


@dataclass(frozen=True, slots=True)
class _TimeOrdered:
    def open(self, spec: StoreSpec, store: ByteStore, context: StoreContext) -> TimeOrderedStore:
        topic = spec.changelog_topic(context.application_id)
        return TimeOrderedStore(spec.name, store, topic, *spec.serdes)

    def layout(self, spec: StoreSpec) -> str:
        return "time-ordered"

    def changelog_config(self, spec: StoreSpec) -> dict[str, str]:
        return dict(COMPACTED)

    def to_changelog(self, spec: StoreSpec, key: bytes, value: bytes | None) -> ChangelogRecord:
        return ChangelogRecord(key, value, None)

    def from_changelog(
        self, spec: StoreSpec, key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        return key, value

    def stream_time(self, spec: StoreSpec, key: bytes) -> int:
        return -1

    def first_live_key(self, spec: StoreSpec, now: int) -> bytes | None:
        return None


TIME_ORDERED: StoreKind = _TimeOrdered()
