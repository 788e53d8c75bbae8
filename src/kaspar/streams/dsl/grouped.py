"""Grouped streams: count, reduce, aggregate; cogroups; and the start of windowed aggregates."""

from collections.abc import Callable
from typing import Any, Self, overload

from kaspar.streams.dsl.groupings import Aggregator, Cogrouping, Grouping, Initializer, count_one, zero
from kaspar.streams.dsl.handles import Table
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.dsl.windowed import (
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    WindowedCogroupedKStream,
    WindowedKStream,
    windowed_by,
    windowed_cogroup_by,
)
from kaspar.streams.operators.aggregates import StreamAggregate, StreamReduce
from kaspar.streams.operators.tables import TableNode
from kaspar.streams.serdes import Serde, long
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.windows import SessionWindows, SlidingWindows, TimeWindows


class KGroupedStream(Grouping[Table]):
    """A grouped stream. `store` names the store of a result, which makes it queryable; its default serdes are those of
    the grouping. A record without a key or a value belongs to no group."""

    def count(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        """Count the records of each key. The default serde of the counts is a 64-bit integer."""
        given = Materialized(store, key_serde, value_serde or long())
        return self._aggregate(zero, count_one, given, name)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `reducer(aggregate, value)` to every value of a key after the first."""
        given = Materialized(store, key_serde, value_serde).or_serdes(self.stream.key_serde, self.stream.value_serde)
        spec = given.key_value_store(self.graph, "KSTREAM-REDUCE-")
        step = self.graph.new_name("KSTREAM-REDUCE-", name)
        return self._table(StreamReduce(step, spec.name, reducer), spec)

    def aggregate(
        self,
        initializer: Initializer,
        aggregator: Aggregator,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `aggregator(key, value, aggregate)` to every record, starting with `initializer()`."""
        return self._aggregate(initializer, aggregator, Materialized(store, key_serde, value_serde), name)

    def cogroup(self, aggregator: Aggregator) -> "CogroupedKStream[Table]":
        """Start an aggregate of several grouped streams. See CogroupedKStream."""
        cogrouped: CogroupedKStream[Table] = CogroupedKStream()
        return cogrouped.cogroup(self, aggregator)

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows) -> WindowedKStream[Table]: ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[Table]: ...

    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | SessionWindows
    ) -> WindowedKStream[Table] | SessionWindowedKStream[Table]:
        return windowed_by(self, windows)

    def _aggregate(
        self, initializer: Initializer, aggregator: Aggregator, given: Materialized, name: str | None
    ) -> Table:
        given = given.or_serdes(self.stream.key_serde)
        spec = given.key_value_store(self.graph, "KSTREAM-AGGREGATE-")
        step = self.graph.new_name("KSTREAM-AGGREGATE-", name)
        return self._table(StreamAggregate(step, spec.name, initializer, aggregator), spec)

    def _table(self, node: TableNode, spec: StoreSpec) -> Table:
        self.attach(node, spec.name)
        self.graph.add_store(spec, [node])
        return self.new_table(self.graph, node, spec.key_serde, spec.value_serde)


class CogroupedKStream(Cogrouping[Table]):
    """Several grouped streams, each with its aggregator, that are combined to one aggregate:

    clicks.cogroup(add_click).cogroup(orders, add_order).aggregate(dict, "totals", value_serde=serdes.json())
    """

    def cogroup(self, grouped: KGroupedStream[Table], aggregator: Aggregator) -> Self:
        self.parts.append((grouped, aggregator))
        return self

    def aggregate(
        self,
        initializer: Initializer,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        given = Materialized(store, key_serde, value_serde).or_serdes(self.key_serde)
        spec = given.key_value_store(self.graph, "COGROUPKSTREAM-AGGREGATE-")

        def node(step: str, aggregator: Aggregator) -> TableNode:
            return StreamAggregate(step, spec.name, initializer, aggregator)

        return self.merged(spec, name, node, spec.key_serde)

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows) -> WindowedCogroupedKStream[Table]: ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[Table]: ...

    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | SessionWindows
    ) -> WindowedCogroupedKStream[Table] | SessionWindowedCogroupedKStream[Table]:
        return windowed_cogroup_by(self, windows)
