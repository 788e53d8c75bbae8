"""Base classes of grouped streams, which add the steps of aggregates to the graph.

KGroupedStream and CogroupedKStream add the methods that a program calls.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeAlias

from kaspar.streams.dsl.handles import NewTable, StreamHandle, Table
from kaspar.streams.operators.tables import TableNode
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.graph import Graph
from kaspar.streams.topology.node import Node, PassThrough

Initializer: TypeAlias = Callable[[], Any]
Aggregator: TypeAlias = Callable[[Any, Any, Any], Any]


def zero() -> int:
    return 0


def count_one(key: Any, value: Any, count: int) -> int:
    return count + 1


class Grouping(Generic[Table]):
    def __init__(self, stream: StreamHandle, name: str | None, new_table: NewTable[Table]) -> None:
        self.stream = stream
        self.graph = stream.graph
        self.name = name
        self.new_table = new_table
        self._repartitioned: StreamHandle | None = None

    def attach(self, node: Node, store: str) -> None:
        """Add a step that receives the grouped records. All steps of a grouping share one repartitioning."""
        if self._repartitioned is None:
            self._repartitioned = self.stream.repartitioned(self.name or store, drop_null_keys=True)
        node.input_serdes = self.stream.key_serde, self.stream.value_serde
        self.graph.add(node, [self._repartitioned.node])


class Cogrouping(Generic[Table]):
    """Several groupings, each with its aggregator."""

    def __init__(self) -> None:
        self.parts: list[tuple[Grouping[Table], Aggregator]] = []

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
    ) -> Table:
        """The combined table of all parts. `node_of` creates the step of a part from its name and aggregator."""
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
        return self.parts[0][0].new_table(graph, merged, key_serde, spec.value_serde)


class CogroupTable(TableNode, PassThrough):
    """The table of a cogroup: the merged changes of its aggregators, which share one store."""

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
