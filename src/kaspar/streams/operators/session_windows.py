"""Aggregates by session windows (KStreamSessionWindowAggregate).

A record starts a session, which is merged with all sessions that are at most the inactivity gap away. Merged sessions
are removed: a deletion of each is forwarded before the new session. The timestamp of a session's result is the
session's end, and the result has no headers. A session is closed when stream time has passed its end by more than the
gap and the grace period. Only records without a key belong to no session.
"""

from collections.abc import Callable
from typing import Any

from kaspar.streams.operators.late_records import LATE, late_record
from kaspar.streams.operators.windowed_tables import SessionTable
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Receiver
from kaspar.streams.windows import EmitStrategy, SessionWindows, Window, Windowed


class SessionWindowAggregate(SessionTable):
    def __init__(
        self,
        name: str,
        store: str,
        windows: SessionWindows,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        merger: Callable[[Any, Any, Any], Any],
        emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    ) -> None:
        super().__init__(name, store, windows.grace_ms + windows.gap_ms, emit_strategy)
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator
        self.merger = merger

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        store, clock = context.store(self.store), self.clock(context)
        find_sessions, put, remove = store.find_sessions, store.put, store.remove
        gap_ms, closes_after_ms = self.windows.gap_ms, self.closes_after_ms
        initializer, aggregator, merger = self.initializer, self.aggregator, self.merger
        sends_old = self.sends_old_values
        closing = self.closing_windows(context, forward)
        emit = forward if closing is None else closing.updated

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                context.drop("null-key")
                return
            if timestamp > clock.now:
                clock.now = timestamp
                if closing is not None:
                    closing.close(timestamp - closes_after_ms - 1)
            start = end = timestamp
            aggregate = initializer()
            merged = list(find_sessions(key, timestamp - gap_ms, timestamp + gap_ms))
            for (_, window), found in merged:
                aggregate = merger(key, aggregate, found)
                start, end = min(start, window[0]), max(end, window[1])
            if end < clock.now - closes_after_ms:
                context.drop(LATE)
                late_record(context, timestamp)
                return
            old, headers = None, context.headers
            context.headers = None
            try:
                if start != end:
                    for session, found in merged:
                        remove(session)
                        emit(session, (None, found if sends_old else None), session[1][1])
                elif merged:
                    old = merged[0][1]
                new = aggregator(key, value, aggregate)
                session = Windowed(key, Window(start, end))
                put(session, new)
                emit(session, (new, old if sends_old else None), end)
            finally:
                context.headers = headers

        return receive
