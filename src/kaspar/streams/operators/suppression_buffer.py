"""The buffer of a suppression: the waiting changes, and their number and size.

The totals of a buffer with limits are kept in a row of its store. Without limits, no totals are kept.
"""

import enum
from dataclasses import dataclass
from typing import Any

from kaspar.streams.operators.buffered_changes import BufferedChange, prior_value
from kaspar.streams.stores.time_ordered import TimeOrderedStore, Totals
from kaspar.streams.topology.context import TaskContext

_SIZE_OF_TIME = 8


class WhenFull(enum.Enum):
    EMIT_EARLY = "emit early"
    SHUT_DOWN = "shut down"


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """None means no limit. Sizes are the bytes of keys, values and headers, estimated as in Kafka."""

    records: int | None = None
    size: int | None = None
    when_full: WhenFull = WhenFull.SHUT_DOWN

    @property
    def is_bounded(self) -> bool:
        return self.records is not None or self.size is not None

    def are_exceeded(self, totals: Totals) -> bool:
        return (self.records is not None and totals.records > self.records) or (
            self.size is not None and totals.size > self.size
        )


class SuppressionBuffer:
    """The waiting changes of a task."""

    def __init__(self, store: TimeOrderedStore, *, by_window: bool, is_bounded: bool) -> None:
        self._store = store
        self._topic = store.topic
        self._by_window = by_window
        self._is_bounded = is_bounded
        self._write_key = store.key_serde.serialize
        self._read_key = store.key_serde.deserialize
        self._write_value = store.value_serde.serialize
        first = store.first()
        self.first_time = None if first is None else first[0]
        """The buffer time of the change that is emitted next."""
        self.totals = self._known_totals()

    def read_value(self, data: bytes | None) -> Any:
        return None if data is None else self._store.value_serde.deserialize(self._topic, data)

    def prior_value(self, key: Any) -> tuple[bool, Any]:
        """Whether a change of the key is buffered, and if so, the last value that downstream steps have seen."""
        raw_key = self._raw_key(key)
        time = key.window.end if self._by_window else self._store.time_of(raw_key)
        data = None if time is None else self._store.get(time, raw_key)
        return (False, None) if data is None else (True, self.read_value(prior_value(data)))

    def put(self, key: Any, change: Any, timestamp: int, context: TaskContext) -> None:
        store, raw_key = self._store, self._raw_key(key)
        time = key.window.end if self._by_window else store.time_of(raw_key)
        if time is None:
            time = timestamp
            store.set_time_of(raw_key, time)
        replaced = store.get(time, raw_key)
        new, old = self._write_value(self._topic, change[0]), self._write_value(self._topic, change[1])
        buffered = BufferedChange(
            old if replaced is None else prior_value(replaced),
            old,
            new,
            timestamp,
            context.topic,
            context.partition,
            context.offset,
            tuple(context.headers or ()),
        )
        store.put(time, raw_key, buffered.to_bytes(), is_new=replaced is None)
        if replaced is None and (self.first_time is None or time < self.first_time):
            self.first_time = time
        if self._is_bounded:
            if replaced is not None:
                self._count(-1, raw_key, BufferedChange.from_bytes(replaced))
            self._count(1, raw_key, buffered)

    def first(self) -> tuple[Any, BufferedChange]:
        """Key and change that are emitted next."""
        _, raw_key, data = self._first()
        return self._read_key(self._topic, raw_key), BufferedChange.from_bytes(data)

    def remove_first(self) -> None:
        store = self._store
        time, raw_key, data = self._first()
        store.remove(time, raw_key)
        if not self._by_window:
            store.set_time_of(raw_key, None)
        if self._is_bounded:
            self._count(-1, raw_key, BufferedChange.from_bytes(data))
        first = store.first()
        self.first_time = None if first is None else first[0]

    def _first(self) -> tuple[int, bytes, bytes]:
        first = self._store.first()
        assert first is not None, "the buffer is empty"
        data = self._store.get(*first)
        assert data is not None, "the first entry is there"
        return *first, data

    def _raw_key(self, key: Any) -> bytes:
        raw_key = self._write_key(self._topic, key)
        assert raw_key is not None, "tables have no null keys"
        return raw_key

    def _count(self, records: int, raw_key: bytes, change: BufferedChange) -> None:
        size = _SIZE_OF_TIME + len(raw_key) + change.size
        self.totals = Totals(self.totals.records + records, self.totals.size + records * size)
        self._store.set_totals(self.totals)

    def _known_totals(self) -> Totals:
        """Read the totals from the store, or count them if the buffer had no limits before."""
        known = self._store.totals()
        if known is not None and not self._is_bounded:
            self._store.set_totals(None)
        if known is None and self._is_bounded:
            known = Totals()
            for _, raw_key, data in self._store.entries():
                size = _SIZE_OF_TIME + len(raw_key) + BufferedChange.from_bytes(data).size
                known = Totals(known.records + 1, known.size + size)
        return known or Totals()
