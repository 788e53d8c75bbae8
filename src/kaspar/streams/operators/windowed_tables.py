"""Tables of windowed aggregates, whose keys are `Windowed(key, window)`.

A window store orders the windows of a key by their starts, a session store by their ends and starts, so a windowed key
is looked up by a fetch of its window.
"""

from typing import Any

from kaspar.streams.operators.closing_windows import ClosingWindows
from kaspar.streams.operators.tables import Getter, TableNode
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import Clock, TaskContext
from kaspar.streams.topology.node import Receiver
from kaspar.streams.windows import EmitStrategy, Windowed


class WindowedTable(TableNode):
    """The result of a windowed aggregate, kept in a store."""

    def __init__(self, name: str, store: str, closes_after_ms: int, emit_strategy: EmitStrategy) -> None:
        super().__init__(name)
        self.store = store
        self.stores = [store]
        self.closes_after_ms = closes_after_ms
        """The time from a window's end until it closes and its result is final: the grace period, for sessions plus the
        gap (GraphGraceSearchUtil)."""
        self.emit_strategy = emit_strategy

    def clock(self, context: TaskContext) -> Clock:
        """The stream time of this step: the largest timestamp of its records."""
        return context.clock(f"step.{self.name}")

    @property
    def closing_store(self) -> str:
        """The name of the store of open windows, if only final results are emitted."""
        return f"{self.store}-closing"

    def closing_windows(self, context: TaskContext, forward: Receiver) -> ClosingWindows | None:
        """The open windows, or None if every update is emitted."""
        if self.emit_strategy is EmitStrategy.ON_WINDOW_UPDATE:
            return None
        return ClosingWindows(context.store(self.closing_store), self.getter(context), forward)

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def getter_stores(self) -> list[str]:
        return [self.store]


class TimeWindowedTable(WindowedTable):
    """A table of tumbling, hopping or sliding windows."""

    def getter(self, context: TaskContext) -> Getter:
        fetch = context.store(self.store).fetch

        def get(key: Windowed[Any]) -> "ValueAndTimestamp[Any] | None":
            found: ValueAndTimestamp[Any] | None = fetch(key[0], key[1][0])
            return found

        return get


class SessionTable(WindowedTable):
    """A table of sessions. The timestamp of a session's value is the session's end."""

    def getter(self, context: TaskContext) -> Getter:
        fetch = context.store(self.store).fetch_session

        def get(key: Windowed[Any]) -> "ValueAndTimestamp[Any] | None":
            start, end = key[1]
            value = fetch(key[0], start, end)
            return None if value is None else ValueAndTimestamp(value, end)

        return get
