"""Divides a topology into sub-topologies, and each of these into the steps before and after its shuffle.

Each sub-topology runs in one Spark query. Records of its sources pass the stateless steps where they are read (the *map
side*), and are then shuffled to the task of their key, where all other steps run (the *task side*). If records need
another key after a stateful step, they are written to an internal topic, with which another sub-topology starts.

An edge from the map side to the task side is a *port*. A source whose records need no step on the map side is itself a
port: its bytes are passed on without deserializing them.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaspar.streams.errors import TopologyError
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition, Sink, Source
from kaspar.streams.topology.graph import GlobalTable, Graph
from kaspar.streams.topology.node import Node

_REPARTITION = "-repartition"


@dataclass(frozen=True, slots=True)
class Port:
    """A point at which records enter the task side."""

    number: int
    parent: Node
    """The last step of the map side; a source that is a port is its own parent."""
    node: Node
    """The first step of the task side."""
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None

    @property
    def is_source(self) -> bool:
        return isinstance(self.node, Source)


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A repartition topic. `name` does not contain the application id."""

    name: str
    partitions: int | None
    """None means that of its sub-topology."""


@dataclass(frozen=True, slots=True)
class SubTopology:
    number: int
    nodes: tuple[Node, ...]
    """All nodes, parents before their children."""
    task_side: frozenset[str]
    ports: tuple[Port, ...]
    stores: tuple[StoreSpec, ...]
    global_tables: tuple[GlobalTable, ...] = ()
    sources: tuple[Source, ...] = field(default=())
    sinks: tuple[Sink, ...] = field(default=())

    @property
    def is_stateful(self) -> bool:
        """Whether it has a task side."""
        return bool(self.task_side)

    @property
    def internal_sinks(self) -> tuple[InternalTopic, ...]:
        return tuple(
            InternalTopic(sink.topic, sink.partitions)
            for sink in self.sinks
            if sink.internal and isinstance(sink.topic, str)
        )

    @property
    def requested_partitions(self) -> int | None:
        """The largest number of partitions that a repartition() requests."""
        asked = [node.partitions for node in self.nodes if isinstance(node, Repartition) and node.partitions]
        return max(asked, default=None)

    def source_of(self, topic: str, application_id: str) -> Source:
        for source in self.sources:
            if topic in source_topics(source, application_id):
                return source
        for source in self.sources:
            if source.matches(topic):
                return source
        raise TopologyError(f"Sub-topology {self.number} has no source for topic {topic}.")

    def port(self, parent: Node, node: Node) -> Port | None:
        """The port of an edge; None if both nodes are on the same side."""
        return next((port for port in self.ports if port.parent is parent and port.node is node), None)


class InternalSource(Source):
    """Reads a repartition topic, whose name is prefixed with the application id."""


def source_topics(source: Source, application_id: str) -> tuple[str, ...]:
    if isinstance(source, InternalSource):
        return tuple(f"{application_id}-{topic}" for topic in source.topics)
    return source.topics


def divide(graph: Graph) -> tuple[SubTopology, ...]:
    """The sub-topologies of a graph. Replaces each Repartition that has to be a topic."""
    _cut(graph)
    order = _sorted(graph.nodes.values())
    groups = _components(graph, order)
    return tuple(_sub_topology(graph, number, group) for number, group in enumerate(groups))


# --- internal topics --------------------------------------------------------------------------------------------------


def _cut(graph: Graph) -> None:
    """Replace each Repartition after a stateful step by a topic."""
    has_state: dict[str, bool] = {}
    for node in _sorted(graph.nodes.values()):
        before = any(has_state[parent.name] for parent in node.parents)
        if isinstance(node, Repartition) and before:
            source = _replace_by_topic(graph, node)
            has_state[source.name] = False
        else:
            has_state[node.name] = before or node.is_stateful


def _replace_by_topic(graph: Graph, node: Repartition) -> Source:
    topic = node.name if node.name.endswith(_REPARTITION) else node.name + _REPARTITION
    del graph.nodes[node.name]
    sink = Sink(
        f"{node.name}-sink",
        topic,
        key_serde=node.key_serde,
        value_serde=node.value_serde,
        internal=True,
        partitions=node.partitions,
        partitioner=node.partitioner,
    )
    source = InternalSource(f"{node.name}-source", [topic], key_serde=node.key_serde, value_serde=node.value_serde)
    graph.nodes[sink.name], graph.nodes[source.name] = sink, source
    sink.parents, source.children = node.parents, node.children
    for parent in node.parents:
        parent.children = [sink if child is node else child for child in parent.children]
    for child in node.children:
        child.parents = [source if parent is node else parent for parent in child.parents]
    return source


def _sorted(nodes: Iterable[Node]) -> list[Node]:
    """Sort parents before their children, and otherwise in the order in which they were added."""
    done: dict[str, Node] = {}

    def visit(node: Node) -> None:
        if node.name in done:
            return
        for parent in node.parents:
            visit(parent)
        done[node.name] = node

    for node in nodes:
        visit(node)
    return list(done.values())


# --- sub-topologies ---------------------------------------------------------------------------------------------------


def _components(graph: Graph, order: Sequence[Node]) -> list[list[Node]]:
    """Groups of nodes that are connected by edges or by a shared store, in the order of their first nodes."""
    leader = {node.name: node.name for node in order}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    def unite(one: str, other: str) -> None:
        leader[find(other)] = find(one)

    users: dict[str, str] = {}
    for node in order:
        for child in node.children:
            unite(node.name, child.name)
        for store in node.stores:
            unite(users.setdefault(store, node.name), node.name)
    groups: dict[str, list[Node]] = {}
    for node in order:
        groups.setdefault(find(node.name), []).append(node)
    return list(groups.values())


def _sub_topology(graph: Graph, number: int, nodes: Sequence[Node]) -> SubTopology:
    task_side: set[str] = set()
    for node in nodes:
        if node.is_stateful or any(parent.name in task_side for parent in node.parents):
            task_side.add(node.name)
    used = {name for node in nodes for name in node.stores}
    return SubTopology(
        number=number,
        nodes=tuple(nodes),
        task_side=frozenset(task_side),
        ports=tuple(_ports(nodes, task_side)),
        stores=tuple(store for name, store in graph.stores.items() if name in used),
        global_tables=tuple(_global_tables(graph, nodes)),
        sources=tuple(node for node in nodes if isinstance(node, Source)),
        sinks=tuple(node for node in nodes if isinstance(node, Sink)),
    )


def _global_tables(graph: Graph, nodes: Sequence[Node]) -> Iterable[GlobalTable]:
    """The global tables that the steps may look up. Each sub-topology has its own copy of them."""
    if any(node.global_stores is None for node in nodes):
        return graph.global_tables.values()
    used = {name for node in nodes for name in node.global_stores or ()}
    return [table for name, table in graph.global_tables.items() if name in used]


def _ports(nodes: Sequence[Node], task_side: set[str]) -> Iterable[Port]:
    numbers = itertools.count()
    for node in nodes:
        if node.name in task_side:
            continue
        crossing = [child for child in node.children if child.name in task_side]
        if isinstance(node, Source) and crossing and node.timestamp_extractor is None:
            yield Port(next(numbers), node, node)
            continue
        for child in crossing:
            key_serde, value_serde = child.input_serdes
            if isinstance(node, Repartition | Source):
                key_serde, value_serde = node.key_serde, node.value_serde
            yield Port(next(numbers), node, child, key_serde, value_serde)
