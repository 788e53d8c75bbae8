"""Grouped streams: count, reduce, aggregate; cogroups; and the same by windows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from kaspar.streams.dsl.kstream import KStream
from kaspar.streams.dsl.ktable import KTable
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.operators.aggregates import StreamAggregate, StreamReduce
from kaspar.streams.operators.tables import TableNode
from kaspar.streams.serdes import Serde, long
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.graph import Graph
from kaspar.streams.topology.node import Node, PassThrough
from kaspar.streams.windows import SessionWindows, SlidingWindows, TimeWindows

if TYPE_CHECKING:
    from kaspar.streams.dsl.windowed import (
        SessionWindowedCogroupedKStream,
        SessionWindowedKStream,
        WindowedCogroupedKStream,
        WindowedKStream,
    )

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]


def zero() -> int:
    return 0


def count_one(key: Any, value: Any, count: int) -> int:
    return count + 1


class KGroupedStream:
    """`store` names the store of a result, which is then queryable; its serdes are those of the grouping unless given.
    A record without key or value belongs to no group."""

    def __init__(self, stream: KStream, name: str | None) -> None:
        self.stream = stream
        self.graph = stream.graph
        self.name = name
        self._repartitioned: KStream | None = None

    def count(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> KTable:
        """How many records each key has; written as a 64-bit integer unless `value_serde` says otherwise."""
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
    ) -> KTable:
        """`reducer(aggregate, value)` for every value but the first of a key."""
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
    ) -> KTable:
        """`aggregator(key, value, aggregate)` for every record, starting from `initializer()`."""
        return self._aggregate(initializer, aggregator, Materialized(store, key_serde, value_serde), name)

    def cogroup(self, aggregator: Aggregator) -> "CogroupedKStream":
        """Begin an aggregate over several grouped streams: see CogroupedKStream."""
        return CogroupedKStream().cogroup(self, aggregator)

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows) -> "WindowedKStream": ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedKStream": ...

    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | SessionWindows
    ) -> "WindowedKStream | SessionWindowedKStream":
        from kaspar.streams.dsl.windowed import windowed_by

        return windowed_by(self, windows)

    def _aggregate(
        self, initializer: Initializer, aggregator: Aggregator, given: Materialized, name: str | None
    ) -> KTable:
        given = given.or_serdes(self.stream.key_serde)
        spec = given.key_value_store(self.graph, "KSTREAM-AGGREGATE-")
        step = self.graph.new_name("KSTREAM-AGGREGATE-", name)
        return self._table(StreamAggregate(step, spec.name, initializer, aggregator), spec)

    def _table(self, node: TableNode, spec: StoreSpec) -> KTable:
        self.attach(node, spec.name)
        self.graph.add_store(spec, [node])
        return KTable(self.graph, node, spec.key_serde, spec.value_serde)

    def attach(self, node: Node, store: str) -> None:
        """Add a step that receives the grouped records. All steps of a grouping share one re-partitioning."""
        if self._repartitioned is None:
            self._repartitioned = self.stream.repartitioned(self.name or store, drop_null_keys=True)
        node.input_serdes = self.stream.key_serde, self.stream.value_serde
        self.graph.add(node, [self._repartitioned.node])


class CogroupedKStream:
    """Several grouped streams, each with its aggregator, that together make one aggregate:

    clicks.cogroup(add_click).cogroup(orders, add_order).aggregate(dict, "totals", value_serde=serdes.json())
    """

    def __init__(self) -> None:
        self.parts: list[tuple[KGroupedStream, Aggregator]] = []

    def cogroup(self, grouped: KGroupedStream, aggregator: Aggregator) -> "CogroupedKStream":
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
    ) -> KTable:
        given = Materialized(store, key_serde, value_serde).or_serdes(self.key_serde)
        spec = given.key_value_store(self.graph, "COGROUPKSTREAM-AGGREGATE-")

        def node(step: str, aggregator: Aggregator) -> TableNode:
            return StreamAggregate(step, spec.name, initializer, aggregator)

        return self.merged(spec, name, node, spec.key_serde)

    @property
    def graph(self) -> Graph:
        return self.parts[0][0].graph

    @property
    def key_serde(self) -> Serde[Any] | None:
        return self.parts[0][0].stream.key_serde

    def merged(
        self,
        spec: StoreSpec,
        name: str | None,
        node_of: Callable[[str, Aggregator], TableNode],
        key_serde: Serde[Any] | None,
    ) -> KTable:
        """The table that all parts make together. `node_of` makes the step of a part from its name and aggregator."""
        graph = self.graph
        merged = CogroupTable(graph.new_name("COGROUPKSTREAM-MERGE-", name), spec.name)
        nodes: list[TableNode] = []
        for number, (grouped, aggregator) in enumerate(self.parts):
            node = node_of(graph.new_name("COGROUPKSTREAM-AGGREGATE-", name, f"-cogroup-agg-{number}"), aggregator)
            grouped.attach(node, f"{spec.name}-{number}" if len(self.parts) > 1 else spec.name)
            nodes.append(node)
        graph.add_store(spec, nodes)
        merged.aggregates = nodes
        graph.add(merged, nodes)
        graph.connect(merged, spec.name)
        return KTable(graph, merged, key_serde, spec.value_serde)

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows) -> "WindowedCogroupedKStream": ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedCogroupedKStream": ...

    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | SessionWindows
    ) -> "WindowedCogroupedKStream | SessionWindowedCogroupedKStream":
        from kaspar.streams.dsl.windowed import windowed_cogroup_by

        return windowed_cogroup_by(self, windows)


class CogroupTable(TableNode, PassThrough):
    """The changes that the aggregators of a cogroup make in their common store."""

    def __init__(self, name: str, store: str) -> None:
        super().__init__(name)
        self.store = store
        self.aggregates: list[TableNode] = []

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        for each in self.aggregates:
            each.send_old_values(force=force)
        return True

    def getter(self, context: Any) -> Any:
        return self.aggregates[0].getter(context)

    def getter_stores(self) -> list[str]:
        return [self.store]
