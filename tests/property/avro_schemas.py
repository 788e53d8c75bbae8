"""Avro schemas for tests: generated ones, pairs of which one evolved from the other, and encoded data that shows every
branch, symbol and field of a schema."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from hypothesis import strategies as st

from kaspar.schemas.avro.types import (
    PRIMITIVES,
    Array,
    AvroType,
    Enumeration,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
)

MAX_DEPTH = 3
# Data of recursive types ends here.
MAX_DATA_DEPTH = 5

_DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2**40,
    "float": 1.5,
    "double": 0.25,
    "bytes": "\u00ff",
    "string": "a",
}
_SYMBOLS = ("A", "B", "C", "D")

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(slots=True)
class _Names:
    """The named types that were defined so far."""

    defined: list[str] = field(default_factory=list)
    enclosing: list[str] = field(default_factory=list)

    def new(self) -> str:
        self.defined.append(f"N{len(self.defined)}")
        return self.defined[-1]


@st.composite
def schemas(draw: Draw) -> str:
    return json.dumps(_type(draw, _Names(), 0))


@st.composite
def evolutions(draw: Draw) -> tuple[str, str]:
    """A schema and one that differs from it in up to three places. The second may be invalid."""
    original = _type(draw, _Names(), 0)
    holder = [copy.deepcopy(original)]
    for _ in range(draw(st.integers(0, 3))):
        slots = list(_slots(holder))
        parent, key = slots[draw(st.integers(0, len(slots) - 1))]
        parent[key] = _edited(draw, parent[key])
    return json.dumps(original), json.dumps(holder[0])


def _type(draw: Draw, names: _Names, depth: int) -> Any:
    kinds = ["primitive", "primitive", "enum", "fixed"]
    if depth < MAX_DEPTH:
        kinds += ["record", "record", "array", "map", "union", "recursion"]
    match draw(st.sampled_from(kinds)):
        case "enum":
            return {"type": "enum", "name": names.new(), "symbols": list(_SYMBOLS[: draw(st.integers(1, 3))])}
        case "fixed":
            return {"type": "fixed", "name": names.new(), "size": draw(st.integers(0, 3))}
        case "record":
            return _record(draw, names, depth)
        case "array":
            return {"type": "array", "items": _type(draw, names, depth + 1)}
        case "map":
            return {"type": "map", "values": _type(draw, names, depth + 1)}
        case "union":
            return _union(draw, names, depth)
        case "recursion" if names.enclosing:
            return ["null", draw(st.sampled_from(names.enclosing))]
        case _:
            return draw(st.sampled_from(sorted(PRIMITIVES)))


def _record(draw: Draw, names: _Names, depth: int) -> Any:
    name = names.new()
    names.enclosing.append(name)
    fields = [_field(draw, f"f{index}", names, depth) for index in range(draw(st.integers(0, 3)))]
    names.enclosing.pop()
    return {"type": "record", "name": name, "fields": fields}


def _field(draw: Draw, name: str, names: _Names, depth: int) -> Any:
    generated = {"name": name, "type": _type(draw, names, depth + 1)}
    if isinstance(generated["type"], str) and generated["type"] in _DEFAULTS and draw(st.booleans()):
        generated["default"] = _DEFAULTS[generated["type"]]
    return generated


def _union(draw: Draw, names: _Names, depth: int) -> Any:
    branches: dict[str, Any] = {}
    for _ in range(draw(st.integers(1, 3))):
        branch = _type(draw, names, depth + 1)
        if isinstance(branch, list):
            continue
        key = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        branches.setdefault(key, branch)
    return list(branches.values()) or "null"


def _slots(holder: Any) -> Iterator[tuple[Any, Any]]:
    """All places that hold a type, as a container and a key."""
    pending: list[tuple[Any, Any]] = [(holder, 0)]
    while pending:
        parent, key = pending.pop()
        yield parent, key
        match parent[key]:
            case {"type": "array"}:
                pending.append((parent[key], "items"))
            case {"type": "map"}:
                pending.append((parent[key], "values"))
            case {"type": "record", "fields": list(fields)}:
                pending += ((one, "type") for one in fields)
            case list() as branches:
                pending += ((branches, index) for index in range(len(branches)))


def _edited(draw: Draw, node: Any) -> Any:
    match node:
        case {"type": "record"} if draw(st.booleans()):
            return _edited_record(draw, node)
        case {"type": "enum"}:
            node["symbols"] = list(_SYMBOLS[: draw(st.integers(1, 4))])
            if draw(st.booleans()):
                node["default"] = node["symbols"][0]
            return node if draw(st.booleans()) else {**node, "name": "Renamed", "aliases": [node["name"]]}
        case {"type": "fixed"}:
            return {**node, "size": draw(st.integers(0, 3))}
        case list() if node and draw(st.booleans()):
            return node[1:] if len(node) > 1 else node[0]
        case list():
            return [*node, draw(st.sampled_from(sorted(PRIMITIVES)))]
        case _ if draw(st.booleans()):
            return [node, *({"null"} - {node if isinstance(node, str) else ""})]
        case _:
            return draw(st.sampled_from(sorted(PRIMITIVES)))


def _edited_record(draw: Draw, node: Any) -> Any:
    fields = node["fields"]
    match draw(st.sampled_from(["add", "add with a default", "remove", "rename", "rename the record"])):
        case "add":
            fields.insert(draw(st.integers(0, len(fields))), {"name": "added", "type": "int"})
        case "add with a default":
            fields.insert(draw(st.integers(0, len(fields))), {"name": "added", "type": "int", "default": 7})
        case "remove" if fields:
            fields.pop(draw(st.integers(0, len(fields) - 1)))
        case "rename" if fields:
            renamed = fields[draw(st.integers(0, len(fields) - 1))]
            renamed["aliases"], renamed["name"] = [renamed["name"]], "renamed"
        case "rename the record":
            node["aliases"], node["name"] = [node["name"]], "Renamed"
    return node


def encodings(of_type: AvroType, depth: int = 0) -> list[bytes]:
    """Encoded data: together they have every branch, every symbol and an element of every array and map."""
    match of_type:
        case Primitive(name=name):
            return [_PRIMITIVE_DATA[name]]
        case Fixed(size=size):
            return [b"x" * size]
        case Enumeration(symbols=symbols):
            return [_zigzag(index) for index in range(len(symbols))]
        case Array(items=items):
            return [b"\x00", *(_zigzag(1) + item + b"\x00" for item in _inner(items, depth))]
        case Map(values=values):
            return [b"\x00", *(_zigzag(1) + _zigzag(1) + b"k" + value + b"\x00" for value in _inner(values, depth))]
        case Union(branches=branches):
            return [_zigzag(index) + datum for index, branch in enumerate(branches) for datum in _inner(branch, depth)]
        case Record(fields=fields):
            columns = [encodings(one.type, depth + 1) for one in fields]
            if not all(columns):
                return []
            rows = zip_longest(*columns)
            return [b"".join(cell if cell is not None else column[0] for cell, column in zip(row, columns, strict=True))
                    for row in rows] or [b""]  # fmt: skip
        case _:
            raise AssertionError(of_type)


def _inner(of_type: AvroType, depth: int) -> list[bytes]:
    if depth > MAX_DATA_DEPTH and not isinstance(of_type, Primitive):
        return []
    return encodings(of_type, depth + 1)


def _zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


_PRIMITIVE_DATA = {
    "null": b"",
    "boolean": b"\x01",
    "int": _zigzag(-5),
    "long": _zigzag(2**40),
    "float": b"\x00\x00\xc0\x3f",
    "double": b"\x00\x00\x00\x00\x00\x00\xf8\x3f",
    "bytes": _zigzag(2) + b"ab",
    "string": _zigzag(2) + b"cd",
}
