"""Suppressed and BufferConfig: how KTable.suppress delays the changes of a table.

table.suppress(Suppressed.until_window_closes())
table.suppress(Suppressed.until_time_limit(60_000, BufferConfig.max_records(10_000).emit_early_when_full()))
"""

from dataclasses import dataclass, replace
from typing import Self, TypeVar

from kaspar.streams.dsl.handles import TableHandle
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators.suppress import TableSuppress
from kaspar.streams.operators.suppression_buffer import BufferLimits, WhenFull
from kaspar.streams.operators.windowed_tables import WindowedTable
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.stores.time_ordered import TIME_ORDERED
from kaspar.streams.topology.endpoints import Repartition
from kaspar.streams.topology.node import Node
from kaspar.streams.windows import Duration, milliseconds

Table = TypeVar("Table", bound=TableHandle)


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """The maximum size of the buffer of each partition. A full buffer emits its earliest changes early, unless it is
    configured to stop the program."""

    limits: BufferLimits

    @classmethod
    def unbounded(cls) -> Self:
        return cls(BufferLimits())

    @classmethod
    def max_records(cls, records: int) -> Self:
        """A buffer with at most this number of keys."""
        return cls(BufferLimits(records=_positive(records, "max_records"), when_full=WhenFull.EMIT_EARLY))

    @classmethod
    def max_bytes(cls, size: int) -> Self:
        return cls(BufferLimits(size=_positive(size, "max_bytes"), when_full=WhenFull.EMIT_EARLY))

    def with_max_records(self, records: int) -> Self:
        """This buffer with an additional limit."""
        return replace(self, limits=replace(self.limits, records=_positive(records, "max_records")))

    def with_max_bytes(self, size: int) -> Self:
        return replace(self, limits=replace(self.limits, size=_positive(size, "max_bytes")))

    def emit_early_when_full(self) -> Self:
        return replace(self, limits=replace(self.limits, when_full=WhenFull.EMIT_EARLY))

    def shut_down_when_full(self) -> Self:
        return replace(self, limits=replace(self.limits, when_full=WhenFull.SHUT_DOWN))


@dataclass(frozen=True, slots=True)
class Suppressed:
    time_limit_ms: int | None
    """None means until the window closes."""
    buffer: BufferConfig

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig | None = None) -> Self:
        """Emit only the final result of each window, when its grace period is over. The buffer must therefore not emit
        early when it is full."""
        buffer = buffer or BufferConfig.unbounded()
        if buffer.limits.is_bounded and buffer.limits.when_full is WhenFull.EMIT_EARLY:
            raise TopologyError(
                "until_window_closes() emits final results only, so its buffer must not emit early when it is full: "
                "use shut_down_when_full()."
            )
        return cls(None, buffer)

    @classmethod
    def until_time_limit(cls, duration: Duration, buffer: BufferConfig | None = None) -> Self:
        """Emit the last value of each key when this much stream time has passed since its first change."""
        return cls(milliseconds(duration, "The time limit"), buffer or BufferConfig.unbounded())


def suppress(table: Table, suppressed: Suppressed, name: str | None) -> Table:
    by_window = suppressed.time_limit_ms is None
    wait_ms = _final_after_ms(table.node) if suppressed.time_limit_ms is None else suppressed.time_limit_ms
    step = table.graph.new_name("KTABLE-SUPPRESS-", name)
    spec = StoreSpec(
        name=table.graph.new_store_name("KTABLE-SUPPRESS-") if name is None else f"{name}-store",
        kind=TIME_ORDERED,
        key_serde=table.key_serde,
        value_serde=table.value_serde,
    )
    node = TableSuppress(step, table.node, spec.name, wait_ms, suppressed.buffer.limits, by_window=by_window)
    node.input_serdes = table.key_serde, table.value_serde
    table.graph.add(node, [table.node])
    table.graph.add_store(spec, [node])
    return table.at(node, table.key_serde, table.value_serde)


def _final_after_ms(node: Node) -> int:
    """The time from the end of a table's window until it closes (GraphGraceSearchUtil)."""
    if isinstance(node, WindowedTable):
        return node.closes_after_ms
    if not node.parents or isinstance(node, Repartition):
        raise TopologyError(
            "until_window_closes() needs a windowed table: use windowed_by() before it, or until_time_limit()."
        )
    return max(_final_after_ms(parent) for parent in node.parents)


def _positive(limit: int, name: str) -> int:
    if limit < 1:
        raise TopologyError(f"{name} must be a number of at least 1, not {limit!r}.")
    return limit
