"""Aggregates by sliding windows (KStreamSlidingWindowAggregate).

A window begins `difference_ms` before a record (its *left window*, which ends with it) or one millisecond after it (its
*right window*), unless it would be empty. Every set of records that fit into a window therefore has exactly one window.
A record updates the windows that contain it, and may create three: its left window, its right window if there are later
records, and the right window of the record before it, which was empty until then.

Windows do not begin before 0. Records before `difference_ms` share the window that begins at 0.
"""

from collections.abc import Callable
from typing import Any

from kaspar.streams.operators.aggregates import NULL_KEY_OR_VALUE
from kaspar.streams.operators.late_records import LATE, late_record
from kaspar.streams.operators.windowed_tables import TimeWindowedTable
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Receiver
from kaspar.streams.windows import EmitStrategy, SlidingWindows, Window, Windowed


class SlidingWindowAggregate(TimeWindowedTable):
    def __init__(
        self,
        name: str,
        store: str,
        windows: SlidingWindows,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    ) -> None:
        super().__init__(name, store, windows.grace_ms, emit_strategy)
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        clock, grace_ms, difference_ms = self.clock(context), self.windows.grace_ms, self.windows.difference_ms
        closing = self.closing_windows(context, forward)
        emit = forward if closing is None else closing.updated

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                context.drop(NULL_KEY_OR_VALUE)
                return
            if timestamp > clock.now:
                clock.now = timestamp
                if closing is not None:
                    closing.close(timestamp - grace_ms - 1)
            close_time = clock.now - grace_ms
            if timestamp + 1 + difference_ms <= close_time:
                context.drop(LATE)
                late_record(context, timestamp)
                return
            step = _Step(self, context, emit, key, value, timestamp, close_time)
            if timestamp < difference_ms:
                step.process_early()
            else:
                step.process()
            if step.is_late:
                late_record(context, timestamp)

        return receive


class _Step:
    """Applies one record to the windows of its key."""

    __slots__ = (
        "_close_time",
        "_context",
        "_difference_ms",
        "_forward",
        "_key",
        "_node",
        "_store",
        "_timestamp",
        "_value",
        "is_late",
    )

    def __init__(
        self,
        node: SlidingWindowAggregate,
        context: TaskContext,
        forward: Receiver,
        key: Any,
        value: Any,
        timestamp: int,
        close_time: int,
    ) -> None:
        self._node = node
        self._context = context
        self._store = context.store(node.store)
        self._forward = forward
        self._difference_ms = node.windows.difference_ms
        self._key = key
        self._value = value
        self._timestamp = timestamp
        self._close_time = close_time
        self.is_late = True
        """Whether all windows of the record are closed."""

    def process(self) -> None:
        timestamp, difference_ms = self._timestamp, self._difference_ms
        # The latest window that ends before the record. A new left window starts with its aggregate.
        left: ValueAndTimestamp[Any] | None = None
        # The latest window that contains the record and ends after it. Its later records are those of the right window.
        later: ValueAndTimestamp[Any] | None = None
        previous: int | None = None
        has_left = has_right = False
        starts = set()
        first = max(0, timestamp - 2 * difference_ms)
        for start, found in self._store.backward_fetch(self._key, first, timestamp + 1):
            starts.add(start)
            end = start + difference_ms
            if start == timestamp + 1:
                has_right = True
            elif end > timestamp:
                later = found if later is None else later
                self._update(start, found)
            elif end == timestamp:
                has_left = True
                self._update(start, found)
                if found.timestamp >= timestamp:
                    return  # a record with the same timestamp has created all windows that this one needs
                previous = found.timestamp
            else:
                left, previous = found, found.timestamp
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + difference_ms >= timestamp:
            self._create(previous + 1, self._node.initializer())
        if not has_left:
            is_empty = previous is None or previous < timestamp - difference_ms
            start = timestamp - difference_ms
            self._create(start, self._node.initializer() if is_empty or left is None else left.value)
        if not has_right:
            self._create_right(later)

    def process_early(self) -> None:
        """Process a record before `difference_ms`, whose left window begins at 0."""
        timestamp = self._timestamp
        shared: ValueAndTimestamp[Any] | None = None
        later: ValueAndTimestamp[Any] | None = None
        previous: int | None = None
        has_right = False
        starts = set()
        for start, found in self._store.fetch(self._key, 0, timestamp + 1):
            starts.add(start)
            if start == 0:
                shared = found
                if found.timestamp < timestamp:
                    previous = found.timestamp
            elif start <= timestamp:
                later = found
                self._update(start, found)
            else:
                has_right = True
        if later is None and shared is not None and shared.timestamp > timestamp:
            later = shared  # if it also had records before this one, these would have a right window
        if not has_right:
            self._create_right(later)
        if previous is not None and previous + 1 not in starts:
            self._create(previous + 1, self._node.initializer())
        if shared is None:
            self._create(0, self._node.initializer())
        else:
            self._update(0, shared)

    def _create_right(self, later: "ValueAndTimestamp[Any] | None") -> None:
        """Create the record's right window, if there are records after it."""
        if later is None or later.timestamp <= self._timestamp:
            return
        start = self._timestamp + 1
        self._store.put(self._key, later, start)
        self._forward(self._windowed(start), (later.value, None), later.timestamp)

    def _create(self, start: int, aggregate: Any) -> None:
        """Create a window with the aggregate, to which the record is added."""
        self._put(start, aggregate, self._timestamp, None)

    def _update(self, start: int, found: "ValueAndTimestamp[Any]") -> None:
        self._put(start, found.value, found.timestamp, found.value)

    def _put(self, start: int, aggregate: Any, latest: int, old: Any) -> None:
        if start + self._difference_ms < self._close_time:
            self._context.drop(LATE)
            return
        self.is_late = False
        new = self._node.aggregator(self._key, self._value, aggregate)
        latest = max(latest, self._timestamp)
        self._store.put(self._key, (new, latest), start)
        self._forward(self._windowed(start), (new, old if self._node.sends_old_values else None), latest)

    def _windowed(self, start: int) -> Windowed[Any]:
        return Windowed(self._key, Window(start, start + self._difference_ms))
