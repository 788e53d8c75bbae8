"""Suppression: delays the changes of a table in a buffer (KTableSuppressProcessorSupplier).

A change waits until the stream time of this step has passed its *buffer time* by `wait_ms`. The buffer time is the end
of its window, or the timestamp of the first buffered change of its key. Later changes of the key replace it and keep
the buffer time. Changes are emitted in the order of buffer time and key. As in Kafka, an emitted change has the old
value of the latest change of its key, and the buffer is checked when a record arrives, not by wall-clock time.
"""

from typing import Any

from kaspar.streams.errors import ProcessingError
from kaspar.streams.operators.suppression_buffer import BufferLimits, SuppressionBuffer, WhenFull
from kaspar.streams.operators.tables import Getter, TableNode
from kaspar.streams.stores.time_ordered import Totals
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import UNKNOWN_TIME, TaskContext
from kaspar.streams.topology.node import Receiver


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
        """Whether results wait for the end of their windows. Deletions are then not emitted, because downstream steps
        have not seen the deleted results."""
        parent.send_old_values(force=True)
        self.sends_old_values = True

    def send_old_values(self, *, force: bool) -> bool:
        return True

    def getter_stores(self) -> list[str]:
        return [self.store, *self.parent.getter_stores()]

    def getter(self, context: TaskContext) -> Getter:
        """The values that downstream steps have seen: for a buffered key, its prior value."""
        parents_value, prior_value = self.parent.getter(context), self._buffer(context).prior_value

        def get(key: Any) -> "ValueAndTimestamp[Any] | None":
            is_waiting, value = prior_value(key)
            if not is_waiting:
                return parents_value(key)
            return None if value is None else ValueAndTimestamp(value, UNKNOWN_TIME)

        return get

    def _buffer(self, context: TaskContext) -> SuppressionBuffer:
        store = context.store(self.store)
        return SuppressionBuffer(store, by_window=self.by_window, is_bounded=self.limits.is_bounded)

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        buffer, clock = self._buffer(context), context.clock(f"step.{self.name}")
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

    def _emit(self, buffer: SuppressionBuffer, context: TaskContext, forward: Receiver) -> None:
        key, change = buffer.first()
        if change.new is not None or not self.by_window:
            values = buffer.read_value(change.new), buffer.read_value(change.old)
            before = context.topic, context.partition, context.offset, context.headers
            raw = context.raw_key, context.raw_value
            context.topic, context.partition, context.offset = change.topic, change.partition, change.offset
            context.headers = change.headers or None
            context.raw_key = context.raw_value = None  # not buffered, as in Kafka
            try:
                forward(key, values, change.timestamp)
            finally:
                context.topic, context.partition, context.offset, context.headers = before
                context.raw_key, context.raw_value = raw
        buffer.remove_first()

    def _full(self, totals: Totals) -> ProcessingError:
        limits = self.limits
        return ProcessingError(
            f"The buffer of {self.name} is full: it has {totals.records} records "
            f"({'no limit' if limits.records is None else f'at most {limits.records}'}) and {totals.size} bytes "
            f"({'no limit' if limits.size is None else f'at most {limits.size}'}), and its BufferConfig stops the "
            "program when it is full."
        )
