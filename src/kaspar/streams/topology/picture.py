"""A topology as a drawing in SVG: sub-topologies side by side, records flowing downwards, stores at their steps.

Steps are arranged in layers, each below its lowest parent. An edge that is a shuffle is dashed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from kaspar.streams.topology.endpoints import Sink, Source
from kaspar.streams.topology.node import Node
from kaspar.streams.topology.plan import SubTopology

_WIDTH: Final = 230
_HEIGHT: Final = 42
_GAP_X: Final = 24
_GAP_Y: Final = 40
_MARGIN: Final = 24
_LONGEST_LABEL: Final = 34

_STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #1b2733; }
  .small { font-size: 10px; fill: #5b6b7a; }
  .frame { fill: none; stroke: #c5d0da; stroke-dasharray: 2 3; }
  .source { fill: #e3f2e6; stroke: #4c9a5e; } .sink { fill: #fdebdd; stroke: #d08443; }
  .step { fill: #eef2f6; stroke: #8b9bab; } .stateful { fill: #e4ecfa; stroke: #5478b8; }
  .edge { fill: none; stroke: #6b7b8b; } .shuffle { stroke-dasharray: 5 4; stroke: #5478b8; }
"""


@dataclass(frozen=True, slots=True)
class _Place:
    x: int
    y: int


def picture(sub_topologies: Sequence[SubTopology]) -> str:
    """The drawing as the text of an SVG file."""
    parts, left, height = [], _MARGIN, 0
    for plan in sub_topologies:
        drawn, width, below = _drawn(plan, left)
        parts += drawn
        left += width + 2 * _MARGIN
        height = max(height, below)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height + _MARGIN}">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"]) + "\n"


def _drawn(plan: SubTopology, left: int) -> tuple[list[str], int, int]:
    """The elements of a sub-topology, its width, and its lower end."""
    layers = _layers(plan)
    columns = max(len(layer) for layer in layers)
    width = columns * (_WIDTH + _GAP_X) - _GAP_X
    places: dict[str, _Place] = {}
    for row, layer in enumerate(layers):
        indent = (width - len(layer) * (_WIDTH + _GAP_X) + _GAP_X) // 2
        for column, node in enumerate(layer):
            x = left + indent + column * (_WIDTH + _GAP_X)
            places[node.name] = _Place(x, 2 * _MARGIN + row * (_HEIGHT + _GAP_Y))
    height = len(layers) * (_HEIGHT + _GAP_Y) - _GAP_Y
    frame = (
        f'<rect class="frame" x="{left - 12}" y="{_MARGIN}" width="{width + 24}" height="{height + 36}" rx="8"/>'
        f'<text class="small" x="{left - 6}" y="{_MARGIN - 6}">Sub-topology {plan.number}</text>'
    )
    edges = [_edge(plan, node, child, places) for node in plan.nodes for child in node.children]
    boxes = [_box(node, places[node.name]) for node in plan.nodes]
    return [frame, *edges, *boxes], width, 2 * _MARGIN + height + 12


def _layers(plan: SubTopology) -> list[list[Node]]:
    depth: dict[str, int] = {}
    for node in plan.nodes:  # parents come before their children
        depth[node.name] = 1 + max((depth[parent.name] for parent in node.parents), default=-1)
    layers: list[list[Node]] = [[] for _ in range(1 + max(depth.values()))]
    for node in plan.nodes:
        layers[depth[node.name]].append(node)
    return layers


def _edge(plan: SubTopology, parent: Node, child: Node, places: dict[str, _Place]) -> str:
    start, end = places[parent.name], places[child.name]
    x1, y1, x2, y2 = start.x + _WIDTH // 2, start.y + _HEIGHT, end.x + _WIDTH // 2, end.y
    is_shuffle = child.name in plan.task_side and parent.name not in plan.task_side
    middle = (y1 + y2) // 2
    kind = "edge shuffle" if is_shuffle else "edge"
    return f'<path class="{kind}" d="M {x1} {y1} C {x1} {middle}, {x2} {middle}, {x2} {y2}"/>'


def _box(node: Node, place: _Place) -> str:
    match node:
        case Source():
            kind, second = "source", node.pattern or ", ".join(node.topics)
        case Sink():
            kind, second = "sink", node.topic if isinstance(node.topic, str) else "topic by function"
        case _:
            kind, second = ("stateful", ", ".join(node.stores)) if node.is_stateful else ("step", "")
    middle = place.x + _WIDTH // 2
    lines = [
        f'<g><title>{escape(node.name)}</title><rect class="{kind}" x="{place.x}" y="{place.y}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" rx="6"/>',
        f'<text x="{middle}" y="{place.y + (18 if second else 26)}" text-anchor="middle">{_label(node.name)}</text>',
    ]
    if second:
        lines.append(
            f'<text class="small" x="{middle}" y="{place.y + 33}" text-anchor="middle">{_label(second)}</text>'
        )
    return "".join([*lines, "</g>"])


def _label(text: str) -> str:
    return escape(text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…")
