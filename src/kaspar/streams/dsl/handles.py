"""Base classes of streams and tables: the node whose output it is, and the serdes of its keys and values.

KStream and KTable add the methods that a program calls. Functions that build steps take handles, and return objects of
the same class.
"""

from collections.abc import Callable
from typing import Any, Self, TypeAlias, TypeVar

from kaspar.streams.operators import stateless
from kaspar.streams.operators.tables import TableNode
from kaspar.streams.serdes import Serde
from kaspar.streams.topology.endpoints import Repartition
from kaspar.streams.topology.graph import Graph
from kaspar.streams.topology.node import Node

Stream = TypeVar("Stream", bound="StreamHandle")
Table = TypeVar("Table")
NewTable: TypeAlias = Callable[[Graph, TableNode, Serde[Any] | None, Serde[Any] | None], Table]
"""The constructor of KTable, for modules that KTable's module imports."""


class StreamHandle:
    def __init__(
        self,
        graph: Graph,
        node: Node,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        needs_repartition: bool = False,
    ) -> None:
        self.graph = graph
        self.node = node
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.needs_repartition = needs_repartition

    def repartitioned(self, base_name: str, *, drop_null_keys: bool = False) -> Self:
        """This stream with each record at the task of its key. It is repartitioned only if an operation has changed
        keys."""
        if not self.needs_repartition:
            return self
        node = self.node
        if drop_null_keys:
            node = self._add(stateless.DropNullKeys(f"{base_name}-repartition-filter"))
        name = f"{base_name}-repartition"
        repartition = Repartition(name, key_serde=self.key_serde, value_serde=self.value_serde)
        self.graph.add(repartition, [node])
        return self.at(repartition, self.key_serde, self.value_serde)

    def at(
        self,
        node: Node,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        needs_repartition: bool = False,
    ) -> Self:
        """A stream of the records that another node of the same graph emits."""
        return type(self)(self.graph, node, key_serde, value_serde, needs_repartition=needs_repartition)

    def with_serdes(self, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None) -> Self:
        """This stream with the given serdes; None keeps its own."""
        return self.at(
            self.node,
            key_serde or self.key_serde,
            value_serde or self.value_serde,
            needs_repartition=self.needs_repartition,
        )

    def _add(self, node: Node) -> Node:
        node.input_serdes = self.key_serde, self.value_serde
        return self.graph.add(node, [self.node])


class TableHandle:
    def __init__(
        self,
        graph: Graph,
        node: TableNode,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> None:
        self.graph = graph
        self.node = node
        self.key_serde = key_serde
        self.value_serde = value_serde

    def at(self, node: TableNode, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None) -> Self:
        """A table of the changes that another node of the same graph emits."""
        return type(self)(self.graph, node, key_serde, value_serde)


class GlobalKTable:
    """A global table (StreamsBuilder.global_table), for joins."""

    def __init__(self, store: str, topic: str) -> None:
        self.store = store
        self.topic = topic
