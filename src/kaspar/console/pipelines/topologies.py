"""The graph of a streams program, parsed from the text of its description.

The text is that of Kafka's Topology.describe(), which a streams program reports as its description. Other pipelines
have no graph.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_FIRST_LINE: Final = "Topologies:"
_SUB_TOPOLOGY: Final = re.compile(r"\s*Sub-topology: (\d+)(.*)")
_NODE: Final = re.compile(r"\s*(Source|Processor|Sink): (\S+) \((.*)\)")
_DETAILS: Final = re.compile(r"(topics?|stores): \[?(.*?)\]?")
_CHILDREN: Final = re.compile(r"\s*--> (.*)")
_SHUFFLED: Final = re.compile(r"\s*Shuffled by key: (.*)")
_MOST_NODES: Final = 2000
"""More nodes than anybody can read."""


class NodeKind(StrEnum):
    SOURCE = "source"
    PROCESSOR = "processor"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class TopologyNode:
    name: str
    kind: NodeKind
    topics: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    depth: int = 0
    """The number of nodes on the longest path to this one."""


@dataclass(frozen=True, slots=True)
class SubTopology:
    number: int
    is_global: bool
    """Whether it fills the store of a global table on every worker."""
    nodes: tuple[TopologyNode, ...]
    shuffled: tuple[str, ...] = ()
    """The nodes and edges (`one --> other`) at which records are exchanged between workers."""


@dataclass(slots=True)
class _Reading:
    """A sub-topology while its lines are parsed."""

    number: int
    is_global: bool
    headlines: dict[str, tuple[NodeKind, tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    children: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shuffled: tuple[str, ...] = ()
    last: str = ""


def read_topology(description: str) -> tuple[SubTopology, ...]:
    """The sub-topologies; none if the text is not the description of a topology, or is too large to draw."""
    lines = description.splitlines()
    if not lines or lines[0].strip() != _FIRST_LINE:
        return ()
    found: list[_Reading] = []
    for line in lines[1:]:
        if (match := _SUB_TOPOLOGY.fullmatch(line)) is not None:
            found.append(_Reading(int(match[1]), "global store" in match[2]))
        elif found:
            _read_line(found[-1], line)
    if sum(len(each.headlines) for each in found) > _MOST_NODES:
        return ()
    return tuple(map(_finished, found))


def _read_line(reading: _Reading, line: str) -> None:
    if (match := _NODE.fullmatch(line)) is not None:
        kind, reading.last = NodeKind(match[1].lower()), match[2]
        details = _DETAILS.fullmatch(match[3])
        names = () if details is None else _names(details[2])
        is_store = details is not None and details[1] == "stores"
        reading.headlines[reading.last] = (kind, () if is_store else names, names if is_store else ())
    elif (match := _CHILDREN.fullmatch(line)) is not None:
        reading.children[reading.last] = _names(match[1])
    elif (match := _SHUFFLED.fullmatch(line)) is not None:
        reading.shuffled = _names(match[1])


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip() not in ("", "none"))


def _finished(reading: _Reading) -> SubTopology:
    depths = _depths(reading)
    nodes = tuple(
        TopologyNode(
            name,
            kind,
            topics,
            stores,
            tuple(child for child in reading.children.get(name, ()) if child in reading.headlines),
            depths[name],
        )
        for name, (kind, topics, stores) in reading.headlines.items()
    )
    return SubTopology(reading.number, reading.is_global, nodes, reading.shuffled)


def _depths(reading: _Reading) -> dict[str, int]:
    """The length of the longest path to each node. The description lists parents before their children, and has no
    cycles; in a text that has any, edges that go back are ignored."""
    order = {name: index for index, name in enumerate(reading.headlines)}
    depths = dict.fromkeys(order, 0)
    for name in order:
        for child in reading.children.get(name, ()):
            if child in order and order[child] > order[name]:
                depths[child] = max(depths[child], depths[name] + 1)
    return depths
