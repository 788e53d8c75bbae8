"""Joins of two streams by key, for records whose timestamps are close to each other (KStreamKStreamJoin).

Each side keeps its records in a window store, and looks up partners in the store of the other side. A joined record has
the later of the two timestamps. In a left or outer join, a record without a partner is emitted alone when its window
and the grace period are over, so it is never followed by a joined record (KIP-633); see waiting_records.py.

Null keys and values follow KIP-962: a record without a value is dropped. A record without a key has no partner: it is
emitted alone if its side keeps unmatched records, and dropped otherwise.
"""

from collections.abc import Callable
from typing import Any

from kaspar.streams.operators.aggregates import NULL_KEY_OR_VALUE
from kaspar.streams.operators.joiners import keyed
from kaspar.streams.operators.late_records import LATE, late_record
from kaspar.streams.operators.waiting_records import WaitingRecord, WaitingRecords
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Node, Receiver
from kaspar.streams.windows import JoinWindows


class JoinWindow(Node):
    """Stores the records of one side for the other side (KStreamJoinWindow). A record that is older than the store's
    retention is late: it may still find partners, but is not found itself."""

    def __init__(self, name: str, store: str) -> None:
        super().__init__(name, stores=[store])
        self.store = store

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        store = context.store(self.store)
        put, known = store.put, store.expired_records

        def receive(key: Any, value: Any, timestamp: int) -> None:
            nonlocal known
            forward(key, value, timestamp)
            if key is None:
                return
            put(key, value, timestamp)
            if store.expired_records != known:
                known = store.expired_records
                context.drop(LATE)
                late_record(context, timestamp)

        return receive


class StreamJoin(Node):
    """One side of a join. `keeps_unmatched`: its records are also emitted without a partner."""

    def __init__(
        self,
        name: str,
        joiner: Callable[..., Any],
        windows: JoinWindows,
        *,
        is_left: bool,
        with_key: bool,
        keeps_unmatched: bool,
        other_store: str,
        waiting_store: str | None,
        time_name: str,
    ) -> None:
        super().__init__(name, stores=[other_store] if waiting_store is None else [other_store, waiting_store])
        self.joiner = joiner
        self.with_key = with_key
        self.windows = windows
        self.is_left = is_left
        self.keeps_unmatched = self.joins_null_keys = keeps_unmatched
        self.other_store = other_store
        self.waiting_store = waiting_store
        self.time_name = time_name
        """The name of the stream time that both sides share."""

    @property
    def bounds_ms(self) -> tuple[int, int]:
        """The maximum time from a record of this side back to an earlier partner, and to a later one."""
        before, after = self.windows.before_ms, self.windows.after_ms
        return (before, after) if self.is_left else (after, before)

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        if self.waiting_store is None:
            return self._inner(context, forward)
        return self._outer(context, forward, context.store(self.waiting_store))

    def _inner(self, context: TaskContext, forward: Receiver) -> Receiver:
        join = keyed(self.joiner, with_key=self.with_key, swapped=not self.is_left)
        fetch = context.store(self.other_store).fetch
        before_ms, after_ms = self.bounds_ms

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                context.drop(NULL_KEY_OR_VALUE)
                return
            for time, other in fetch(key, max(0, timestamp - before_ms), max(0, timestamp + after_ms)):
                forward(key, join(key, value, other), time if time > timestamp else timestamp)

        return receive

    def _outer(self, context: TaskContext, forward: Receiver, waiting: WaitingRecords) -> Receiver:
        join = keyed(self.joiner, with_key=self.with_key, swapped=not self.is_left)
        fetch = context.store(self.other_store).fetch
        stream_time = context.clock(self.time_name)
        before_ms, after_ms = self.bounds_ms
        is_left, keeps_unmatched, grace_ms = self.is_left, self.keeps_unmatched, self.windows.grace_ms
        left_open_ms, right_open_ms = self.windows.after_ms + grace_ms, self.windows.before_ms + grace_ms

        def emit_closed(now: int) -> None:
            for record in waiting.take_closed(now - left_open_ms, now - right_open_ms):
                key, value = record.key, record.value
                joined = join(key, value, None) if record.is_left is is_left else join(key, None, value)
                forward(key, joined, record.timestamp)

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if timestamp > stream_time.now:
                stream_time.now = timestamp
            if key is None or value is None:
                if keeps_unmatched and value is not None:
                    forward(key, join(key, value, None), timestamp)
                else:
                    context.drop(NULL_KEY_OR_VALUE)
                return
            now = stream_time.now
            if timestamp == now and waiting.earliest + after_ms + grace_ms < now:
                emit_closed(now)
            last = max(0, timestamp + after_ms)
            is_matched = False
            for time, other in fetch(key, max(0, timestamp - before_ms), last):
                is_matched = True
                waiting.remove(is_left=not is_left, key=key, timestamp=time)
                forward(key, join(key, value, other), time if time > timestamp else timestamp)
            if is_matched or not keeps_unmatched:
                return
            if last < now:
                forward(key, join(key, value, None), timestamp)
            else:
                waiting.add(WaitingRecord(is_left, key, value, timestamp))

        return receive
