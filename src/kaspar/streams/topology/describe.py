"""The description of a topology in the format of Kafka's TopologyDescription, plus the shuffle of each sub-topology."""

from collections.abc import Iterator, Sequence

from kaspar.streams.topology.endpoints import Sink, Source
from kaspar.streams.topology.graph import GlobalTable
from kaspar.streams.topology.node import Node
from kaspar.streams.topology.plan import SubTopology


def description(sub_topologies: Sequence[SubTopology], global_tables: Sequence[GlobalTable]) -> str:
    lines = ["Topologies:"]
    for sub_topology in sub_topologies:
        lines += _sub_topology(sub_topology)
    for number, table in enumerate(global_tables, len(sub_topologies)):
        lines += _global(number, table)
    return "\n".join(lines) + "\n"


def _sub_topology(plan: SubTopology) -> Iterator[str]:
    yield f"   Sub-topology: {plan.number}"
    for node in plan.nodes:
        yield f"    {headline(node)}"
        if not isinstance(node, Sink):
            yield f"      --> {_names(node.children)}"
        if not isinstance(node, Source):
            yield f"      <-- {_names(node.parents)}"
    if plan.ports:
        edges = (port.parent.name if port.parent is port.node else _edge(port.parent, port.node) for port in plan.ports)
        yield f"    Shuffled by key: {', '.join(edges)}"
    yield ""


def headline(node: Node) -> str:
    """The type and name of a node, with its topics or stores."""
    match node:
        case Source(pattern=str() as pattern):
            return f"Source: {node.name} (topics: {pattern})"
        case Source():
            return f"Source: {node.name} (topics: [{', '.join(node.topics)}])"
        case Sink(topic=str() as topic):
            return f"Sink: {node.name} (topic: {topic})"
        case Sink():
            return f"Sink: {node.name} (extractor class: {getattr(node.topic, '__name__', 'function')})"
        case _:
            return f"Processor: {node.name} (stores: [{', '.join(node.stores)}])"


def _global(number: int, table: GlobalTable) -> Iterator[str]:
    yield f"   Sub-topology: {number} for global store (will not generate tasks)"
    yield f"    {headline(table.source)}"
    yield f"      --> {table.store.name}"
    yield f"    Processor: {table.store.name} (stores: [{table.store.name}])"
    yield "      --> none"
    yield f"      <-- {table.source.name}"
    yield ""


def _edge(parent: Node, child: Node) -> str:
    return f"{parent.name} --> {child.name}"


def _names(nodes: Sequence[Node]) -> str:
    return ", ".join(node.name for node in nodes) or "none"
