"""Suppression: changes of a table wait in a buffer (KTableSuppressProcessorSupplier).

A change waits until the stream time of this step is `wait_ms` behind its *buffer time*: the end of its window, or the
timestamp of the first change of its key. Later changes of the key replace it in its place. Changes leave in the order
of buffer time and key. As in Kafka, a change that leaves has the old value of the last change of its key, and the
buffer is looked at whenever a record arrives, not by the clock.
"""

import enum
from dataclasses import dataclass
from typing import Any

from kaspar.streams.errors import ProcessingError
from kaspar.streams.operators.buffered_changes import BufferedChange, prior_value
from kaspar.streams.operators.tables import Getter, TableNode
from kaspar.streams.stores.time_ordered import TimeOrderedStore, Totals
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import UNKNOWN_TIME, TaskContext
from kaspar.streams.topology.node import Receiver

_SIZE_OF_TIME = 8


class WhenFull(enum.Enum):
    EMIT_EARLY = "emit early"
    SHUT_DOWN = "shut down"


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """None: no limit. Sizes are those of the bytes of keys, values and headers, estimated as in Kafka."""

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


class TableSuppress(TableNode):
    def __init__(
        self, name: str, parent: TableNode, store: str, wait_ms: int, limits: BufferLimits, *, by_window: bool
    ) -> None:
        super().__init__(name)
        self.parent = parent
        self.store = store
        self.wait_ms = wait_ms
        self.limits = limits
        self.by_window = by_window
        """Whether results wait for the end of their windows. Then deletions are not emitted: nobody has seen what they
        delete."""
        parent.send_old_values(force=True)
        self.sends_old_values = True

    def send_old_values(self, *, force: bool) -> bool:
        return True

    def getter_stores(self) -> list[str]:
        return [self.store, *self.parent.getter_stores()]

    def getter(self, context: TaskContext) -> Getter:
        """What the steps behind the buffer have seen: the prior value of a key that waits."""
        parents_value, buffer = self.parent.getter(context), _Buffer(self, context.store(self.store))

        def get(key: Any) -> "ValueAndTimestamp[Any] | None":
            data = buffer.waiting(key)
            if data is None:
                return parents_value(key)
            value = buffer.read_value(prior_value(data))
            return None if value is None else ValueAndTimestamp(value, UNKNOWN_TIME)

        return get

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        buffer, clock = _Buffer(self, context.store(self.store)), context.clock(self.name)
        wait_ms, limits = self.wait_ms, self.limits

        def receive(key: Any, change: Any, timestamp: int) -> None:
            if timestamp > clock.now:
                clock.now = timestamp
            buffer.put(key, change, timestamp, context)
            expired = clock.now - wait_ms
            while buffer.first_time is not None and buffer.first_time <= expired:
                self._emit(buffer, context, forward)
            if limits.is_bounded and limits.are_exceeded(buffer.totals):
                if limits.when_full is WhenFull.SHUT_DOWN:
                    raise self._full(buffer.totals)
                while limits.are_exceeded(buffer.totals):
                    self._emit(buffer, context, forward)

        return receive

    def _emit(self, buffer: "_Buffer", context: TaskContext, forward: Receiver) -> None:
        key, change = buffer.first()
        if change.new is not None or not self.by_window:
            values = buffer.read_value(change.new), buffer.read_value(change.old)
            before = context.topic, context.partition, context.offset, context.headers
            context.topic, context.partition, context.offset = change.topic, change.partition, change.offset
            context.headers = change.headers or None
            try:
                forward(key, values, change.timestamp)
            finally:
                context.topic, context.partition, context.offset, context.headers = before
        buffer.remove_first()

    def _full(self, totals: Totals) -> ProcessingError:
        limits = self.limits
        return ProcessingError(
            f"The buffer of {self.name} is full: it has {totals.records} records "
            f"({'no limit' if limits.records is None else f'at most {limits.records}'}) and {totals.size} bytes "
            f"({'no limit' if limits.size is None else f'at most {limits.size}'}), and its BufferConfig says that the "
            "program stops then."
        )


class _Buffer:
    """The waiting changes of a task."""

    def __init__(self, node: TableSuppress, store: TimeOrderedStore) -> None:
        self._store = store
        self._topic = store.topic
        self._by_window = node.by_window
        self._is_bounded = node.limits.is_bounded
        self._write_key = store.key_serde.serialize
        self._read_key = store.key_serde.deserialize
        self._write_value = store.value_serde.serialize
        first = store.first()
        self.first_time = None if first is None else first[0]
        """The buffer time of the change that leaves next."""
        self.totals = self._known_totals()

    def read_value(self, data: bytes | None) -> Any:
        return None if data is None else self._store.value_serde.deserialize(self._topic, data)

    def waiting(self, key: Any) -> bytes | None:
        """The change of a key, as bytes."""
        raw_key = self._raw_key(key)
        time = key.window.end if self._by_window else self._store.time_of(raw_key)
        return None if time is None else self._store.get(time, raw_key)

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
        """Key and change that leave next."""
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
        """Those of a buffer without limits are not kept: they are counted when it gets some."""
        known = self._store.totals()
        if known is not None and not self._is_bounded:
            self._store.set_totals(None)
        if known is None and self._is_bounded:
            known = Totals()
            for _, raw_key, data in self._store.entries():
                size = _SIZE_OF_TIME + len(raw_key) + BufferedChange.from_bytes(data).size
                known = Totals(known.records + 1, known.size + size)
        return known or Totals()
