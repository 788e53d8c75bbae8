"""Windowed grouped streams and cogroups: count, reduce and aggregate for each key and window.

The results are tables with keys `Windowed(key, Window(start, end))`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeAlias

from kaspar.streams.dsl.groupings import Aggregator, Cogrouping, Grouping, Initializer, count_one, zero
from kaspar.streams.dsl.handles import Table
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators.session_windows import SessionWindowAggregate
from kaspar.streams.operators.sliding_windows import SlidingWindowAggregate
from kaspar.streams.operators.time_windows import TimeWindowAggregate
from kaspar.streams.operators.windowed_keys import WindowedKeys
from kaspar.streams.operators.windowed_tables import WindowedTable
from kaspar.streams.serdes import Serde, long
from kaspar.streams.stores.kinds import SESSION, TIMESTAMPED_WINDOW
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.stores.time_ordered import TIME_ORDERED
from kaspar.streams.topology.graph import Graph
from kaspar.streams.windows import (
    Duration,
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    milliseconds,
)

Merger: TypeAlias = Callable[[Any, Any, Any], Any]
AnyWindows: TypeAlias = TimeWindows | SlidingWindows | SessionWindows


def windowed_by(
    grouped: Grouping[Table], windows: AnyWindows
) -> "WindowedKStream[Table] | SessionWindowedKStream[Table]":
    if isinstance(windows, SessionWindows):
        return SessionWindowedKStream(grouped, windows)
    return WindowedKStream(grouped, _checked(windows))


def windowed_cogroup_by(
    cogrouped: Cogrouping[Table], windows: AnyWindows
) -> "WindowedCogroupedKStream[Table] | SessionWindowedCogroupedKStream[Table]":
    if isinstance(windows, SessionWindows):
        return SessionWindowedCogroupedKStream(cogrouped, windows)
    return WindowedCogroupedKStream(cogrouped, _checked(windows))


@dataclass(frozen=True, slots=True)
class WindowedKStream(Generic[Table]):
    """A grouped stream with tumbling, hopping or sliding windows (TimeWindowedKStream).

    `store` names the store of a result. It keeps windows for their size and grace period, or for `retention`, which
    must not be shorter.
    """

    grouped: Grouping[Table]
    windows: TimeWindows | SlidingWindows
    emits: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, strategy: EmitStrategy) -> Self:
        """Choose whether every update is emitted, or only the final result of each window (KIP-825)."""
        return replace(self, emits=strategy)

    def count(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """Count the records of each key and window."""
        given = Materialized(store, key_serde, value_serde or long())
        return self._table(zero, count_one, given, retention, name, "KSTREAM-AGGREGATE-")

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `reducer(aggregate, value)` to every value of a key and window after the first."""
        given = Materialized(store, key_serde, value_serde).or_serdes(None, self.grouped.stream.value_serde)
        return self._table(_nothing, _reducing(reducer), given, retention, name, "KSTREAM-REDUCE-")

    def aggregate(
        self,
        initializer: Initializer,
        aggregator: Aggregator,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `aggregator(key, value, aggregate)` to every record, starting with `initializer()` in each window."""
        given = Materialized(store, key_serde, value_serde)
        return self._table(initializer, aggregator, given, retention, name, "KSTREAM-AGGREGATE-")

    def _table(
        self,
        initializer: Initializer,
        aggregator: Aggregator,
        given: Materialized,
        retention: Duration | None,
        name: str | None,
        prefix: str,
    ) -> Table:
        graph = self.grouped.graph
        spec = _window_store(graph, given.or_serdes(self.grouped.stream.key_serde), self.windows, retention, prefix)
        node = _time_node(graph.new_name(prefix, name), spec, self.windows, initializer, aggregator, self.emits)
        return _attached(self.grouped, node, spec)


@dataclass(frozen=True, slots=True)
class SessionWindowedKStream(Generic[Table]):
    """A grouped stream with session windows. `merger(key, aggregate, other_aggregate)` combines two aggregates when a
    record connects two sessions."""

    grouped: Grouping[Table]
    windows: SessionWindows
    emits: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, strategy: EmitStrategy) -> Self:
        """Choose whether every update is emitted, or only the final result of each session (KIP-825)."""
        return replace(self, emits=strategy)

    def count(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """Count the records of each session."""
        given = Materialized(store, key_serde, value_serde or long())
        return self._table(zero, count_one, _sum, given, retention, name, "KSTREAM-AGGREGATE-")

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `reducer(aggregate, value)` to every value of a session after the first. It also merges sessions."""
        given = Materialized(store, key_serde, value_serde).or_serdes(None, self.grouped.stream.value_serde)
        aggregator = _reducing(reducer)

        def merger(key: Any, aggregate: Any, other: Any) -> Any:
            return aggregator(key, other, aggregate)

        return self._table(_nothing, aggregator, merger, given, retention, name, "KSTREAM-REDUCE-")

    def aggregate(
        self,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `aggregator(key, value, aggregate)` to every record, starting with `initializer()` in each session."""
        given = Materialized(store, key_serde, value_serde)
        return self._table(initializer, aggregator, merger, given, retention, name, "KSTREAM-AGGREGATE-")

    def _table(
        self,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        given: Materialized,
        retention: Duration | None,
        name: str | None,
        prefix: str,
    ) -> Table:
        graph = self.grouped.graph
        spec = _session_store(graph, given.or_serdes(self.grouped.stream.key_serde), self.windows, retention, prefix)
        if self.emits is EmitStrategy.ON_WINDOW_CLOSE:
            # A session whose end is exactly the retention ago is still open, but the store no longer returns it.
            spec = replace(spec, retention_ms=max(spec.retention_ms, self.windows.retention_ms + 1))
        node = SessionWindowAggregate(
            graph.new_name(prefix, name), spec.name, self.windows, initializer, aggregator, merger, self.emits
        )
        return _attached(self.grouped, node, spec)


@dataclass(frozen=True, slots=True)
class WindowedCogroupedKStream(Generic[Table]):
    """Several windowed grouped streams that are combined to one aggregate (TimeWindowedCogroupedKStream)."""

    cogrouped: Cogrouping[Table]
    windows: TimeWindows | SlidingWindows

    def aggregate(
        self,
        initializer: Initializer,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        given = Materialized(store, key_serde, value_serde).or_serdes(self.cogrouped.key_serde)
        windows, graph = self.windows, self.cogrouped.graph
        spec = _window_store(graph, given, windows, retention, "COGROUPKSTREAM-AGGREGATE-")

        def node(step: str, aggregator: Aggregator) -> WindowedTable:
            return _time_node(step, spec, windows, initializer, aggregator, EmitStrategy.ON_WINDOW_UPDATE)

        return self.cogrouped.merged(spec, name, node, _keys_of(spec))


@dataclass(frozen=True, slots=True)
class SessionWindowedCogroupedKStream(Generic[Table]):
    """Several grouped streams with session windows that are combined to one aggregate."""

    cogrouped: Cogrouping[Table]
    windows: SessionWindows

    def aggregate(
        self,
        initializer: Initializer,
        merger: Merger,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        given = Materialized(store, key_serde, value_serde).or_serdes(self.cogrouped.key_serde)
        windows, graph = self.windows, self.cogrouped.graph
        spec = _session_store(graph, given, windows, retention, "COGROUPKSTREAM-AGGREGATE-")

        def node(step: str, aggregator: Aggregator) -> WindowedTable:
            return SessionWindowAggregate(step, spec.name, windows, initializer, aggregator, merger)

        return self.cogrouped.merged(spec, name, node, _keys_of(spec))


# --- stores and steps -------------------------------------------------------------------------------------------------


def _checked(windows: TimeWindows | SlidingWindows) -> TimeWindows | SlidingWindows:
    if not isinstance(windows, TimeWindows | SlidingWindows):
        raise TopologyError(
            f"windowed_by() needs TimeWindows, SlidingWindows or SessionWindows, not {type(windows).__name__}."
        )
    return windows


def _time_node(
    step: str,
    spec: StoreSpec,
    windows: TimeWindows | SlidingWindows,
    initializer: Initializer,
    aggregator: Aggregator,
    emits: EmitStrategy,
) -> WindowedTable:
    if isinstance(windows, SlidingWindows):
        return SlidingWindowAggregate(step, spec.name, windows, initializer, aggregator, emits)
    return TimeWindowAggregate(step, spec.name, windows, initializer, aggregator, emits)


def _window_store(
    graph: Graph, given: Materialized, windows: TimeWindows | SlidingWindows, retention: Duration | None, prefix: str
) -> StoreSpec:
    return StoreSpec(
        name=given.name or graph.new_store_name(prefix),
        kind=TIMESTAMPED_WINDOW,
        key_serde=given.key_serde,
        value_serde=given.value_serde,
        retention_ms=_retention_ms(windows, retention),
        window_size_ms=windows.size_ms if isinstance(windows, TimeWindows) else windows.difference_ms,
    )


def _session_store(
    graph: Graph, given: Materialized, windows: SessionWindows, retention: Duration | None, prefix: str
) -> StoreSpec:
    return StoreSpec(
        name=given.name or graph.new_store_name(prefix),
        kind=SESSION,
        key_serde=given.key_serde,
        value_serde=given.value_serde,
        retention_ms=_retention_ms(windows, retention),
    )


def _retention_ms(windows: AnyWindows, retention: Duration | None) -> int:
    if retention is None:
        return windows.retention_ms
    retention_ms = milliseconds(retention, "The retention")
    if retention_ms < windows.retention_ms:
        raise TopologyError(
            f"A retention of {retention_ms} ms is too short: these windows need {windows.retention_ms} ms, since they "
            "accept records until their grace period is over."
        )
    return retention_ms


def _keys_of(spec: StoreSpec) -> WindowedKeys:
    return WindowedKeys(spec.key_serde, None if spec.kind == SESSION else spec.window_size_ms)


def _attached(grouped: Grouping[Table], node: WindowedTable, spec: StoreSpec) -> Table:
    grouped.attach(node, spec.name)
    grouped.graph.add_store(spec, [node])
    if node.emit_strategy is EmitStrategy.ON_WINDOW_CLOSE:
        grouped.graph.add_store(StoreSpec(node.closing_store, TIME_ORDERED, spec.key_serde, spec.value_serde), [node])
    return grouped.new_table(grouped.graph, node, _keys_of(spec), spec.value_serde)


# --- aggregators ------------------------------------------------------------------------------------------------------


def _nothing() -> None:
    """The initializer of a reduction."""


def _reducing(reducer: Callable[[Any, Any], Any]) -> Aggregator:
    def aggregator(key: Any, value: Any, aggregate: Any) -> Any:
        return value if aggregate is None else reducer(aggregate, value)

    return aggregator


def _sum(key: Any, count: int, other: int) -> int:
    return count + other
