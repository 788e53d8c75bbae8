"""Aggregates by tumbling and hopping windows (KStreamWindowAggregate).

A record belongs to all windows that contain its timestamp. A window is closed when the stream time of this step, minus
the grace period, has reached its end; its later records are dropped. Only records without a key belong to no window:
the aggregator is also called for values of None, as in Kafka.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from kaspar.base.named_tuples import new_tuple
from kaspar.streams.operators.closing_windows import ClosingWindows
from kaspar.streams.operators.late_records import LATE, late_record
from kaspar.streams.operators.windowed_tables import TimeWindowedTable
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Receiver
from kaspar.streams.windows import EmitStrategy, TimeWindows, Window, Windowed

Update: TypeAlias = Callable[[Any, Any, int, Window], None]
"""Adds a record to one window. Takes key, value, timestamp and window."""


class TimeWindowAggregate(TimeWindowedTable):
    def __init__(
        self,
        name: str,
        store: str,
        windows: TimeWindows,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    ) -> None:
        super().__init__(name, store, windows.grace_ms, emit_strategy)
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        closing = self.closing_windows(context, forward)
        update = self._updating(context, forward if closing is None else closing.updated)
        if self.windows.advance_ms == self.windows.size_ms:
            return self._tumbling(context, update, closing)
        return self._hopping(context, update, closing)

    def _tumbling(self, context: TaskContext, update: Update, closing: ClosingWindows | None) -> Receiver:
        clock, grace_ms, size_ms = self.clock(context), self.windows.grace_ms, self.windows.size_ms
        window = Window(0, size_ms)

        def receive(key: Any, value: Any, timestamp: int) -> None:
            nonlocal window
            if key is None:
                context.drop("null-key")
                return
            if timestamp > clock.now:
                clock.now = timestamp
                if closing is not None:
                    closing.close(timestamp - grace_ms)
            start = timestamp - timestamp % size_ms
            if start != window[0]:
                window = Window(start, start + size_ms)
            if start + size_ms <= clock.now - grace_ms:
                context.drop(LATE)
                late_record(context, timestamp)
                return
            update(key, value, timestamp, window)

        return receive

    def _hopping(self, context: TaskContext, update: Update, closing: ClosingWindows | None) -> Receiver:
        clock, windows, grace_ms = self.clock(context), self.windows, self.windows.grace_ms
        bucket, matching = -1, [Window(0, 0)]
        # If the size is a multiple of the advance, the windows of a timestamp change only when the next window begins.
        step_ms = windows.advance_ms if windows.size_ms % windows.advance_ms == 0 else 1

        def receive(key: Any, value: Any, timestamp: int) -> None:
            nonlocal bucket, matching
            if key is None:
                context.drop("null-key")
                return
            if timestamp > clock.now:
                clock.now = timestamp
                if closing is not None:
                    closing.close(timestamp - grace_ms)
            if timestamp // step_ms != bucket:
                bucket, matching = timestamp // step_ms, list(windows.windows_for(timestamp))
            close_time, is_late = clock.now - grace_ms, True
            for window in matching:
                if window[1] > close_time:
                    is_late = False
                    update(key, value, timestamp, window)
                else:
                    context.drop(LATE)
            if is_late:
                late_record(context, timestamp)

        return receive

    def _updating(self, context: TaskContext, emit: Receiver) -> Update:
        store = context.store(self.store)
        fetch_row, put_row = store.fetch_row, store.put_row
        initializer, aggregator, sends_old = self.initializer, self.aggregator, self.sends_old_values

        def update(key: Any, value: Any, timestamp: int, window: Window) -> None:
            row, found = fetch_row(key, window[0])
            if found is None:
                old, latest = None, timestamp
                new = aggregator(key, value, initializer())
            else:
                old, latest = found
                new = aggregator(key, value, old)
                if latest < timestamp:
                    latest = timestamp
            put_row(row, new, latest)
            emit(new_tuple(Windowed, (key, window)), (new, old if sends_old else None), latest)

        return update
