"""An Avro schema as the JSON encoding needs it: all names resolved, without logical types, in one tree.

In the JSON encoding a value of a union stands in an object with the name of its branch: {"string": "x"}. Records have
no bytes of their own in Avro. So a schema whose branches are each a record with one field of that name has the same
bytes, and fastavro reads them as the JSON encoding.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kaspar.schemas.schema import InvalidSchema
from kaspar.serialization.errors import reason_of

Node = Any
"""The text of a primitive type or the full name of one that was defined before; a dict for a definition; a list for a
union."""

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_BRANCH: Final = "kaspar.union.Branch"


@dataclass(frozen=True, slots=True)
class AvroSchema:
    root: Node
    definitions: Mapping[str, dict[str, Any]]
    """Of records, enums and fixeds, by their full names."""
    is_recursive: bool
    has_empty_items: bool
    """Whether there is an array whose items may have no bytes, so that few bytes can be any number of items."""

    def resolved(self, node: Node) -> Node:
        return self.definitions.get(node, node) if isinstance(node, str) else node


def load_schema(text: str, references: Mapping[str, str]) -> AvroSchema:
    """`references` are the texts that it refers to; what others depend on comes first. Raises InvalidSchema."""
    from fastavro import parse_schema

    named: dict[str, dict[str, Any]] = {}
    try:
        for each in references.values():
            parse_schema(json.loads(each), named)
        parsed = parse_schema(json.loads(text), named)
    except Exception as error:  # fastavro's own kinds, KeyError, RecursionError and more
        raise InvalidSchema(f"The Avro schema is invalid: {reason_of(error)}.") from error
    return _Builder(named).build(parsed)


def branch_name(schema: AvroSchema, node: Node) -> str:
    """How the JSON encoding names a branch of a union: by the full name, or by the type if that has none."""
    resolved = schema.resolved(node)
    if isinstance(resolved, str):
        return resolved
    assert isinstance(resolved, dict), "a union has no unions in it"
    return str(resolved.get("name", resolved["type"]))


def with_named_branches(schema: AvroSchema) -> Node:
    """The schema of the same bytes, in which every branch of a union but null is a record of one field."""
    numbers = iter(range(1 << 30))

    def convert(node: Node) -> Node:
        match node:
            case list():
                return [each if each == "null" else branch(each) for each in node]
            case {"type": "array", "items": items}:
                return {"type": "array", "items": convert(items)}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": convert(values)}
            case {"type": "record", "name": name, "fields": fields}:
                converted = [{"name": field["name"], "type": convert(field["type"])} for field in fields]
                return {"type": "record", "name": name, "fields": converted}
        return node

    def branch(node: Node) -> Node:
        # Numbered before its contents, which may have branches, too.
        number = next(numbers)
        field = {"name": branch_name(schema, node), "type": convert(node)}
        return {"type": "record", "name": f"{_BRANCH}{number}", "fields": [field]}

    return convert(schema.root)


class _Builder:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._definitions: dict[str, dict[str, Any]] = {}
        self._open: list[str] = []
        self._is_recursive = False

    def build(self, parsed: Any) -> AvroSchema:
        root = self._node(parsed)
        schema = AvroSchema(root, self._definitions, self._is_recursive, has_empty_items=False)
        arrays = [node for node in _nodes(root) if isinstance(node, dict) and node["type"] == "array"]
        empty = any(_may_be_empty(schema, array["items"], ()) for array in arrays)
        return AvroSchema(root, self._definitions, self._is_recursive, has_empty_items=empty)

    def _node(self, node: Any) -> Node:
        if isinstance(node, list):
            return [self._node(branch) for branch in node]
        if isinstance(node, str):
            return self._name(node)
        match node["type"]:
            case "record" | "error" | "enum" | "fixed":
                return self._definition(node)
            case "array":
                return {"type": "array", "items": self._node(node["items"])}
            case "map":
                return {"type": "map", "values": self._node(node["values"])}
            case other:
                return self._node(other)  # a primitive with properties, such as a logical type

    def _name(self, name: str) -> Node:
        if name in PRIMITIVES:
            return name
        if name in self._definitions or name in self._open:
            self._is_recursive = self._is_recursive or name in self._open
            return name
        return self._definition(self._named[name])

    def _definition(self, node: Mapping[str, Any]) -> Node:
        name = node["name"]
        if name in self._definitions:  # of a reference that another one has brought as well
            return str(name)
        definition: dict[str, Any]
        match node["type"]:
            case "enum":
                definition = {"type": "enum", "name": name, "symbols": list(node["symbols"])}
            case "fixed":
                definition = {"type": "fixed", "name": name, "size": node["size"]}
            case _:
                self._open.append(name)
                fields = [
                    {"name": field["name"], "type": self._node(field["type"]), "aliases": field.get("aliases", [])}
                    for field in node["fields"]
                ]
                self._open.pop()
                definition = {"type": "record", "name": name, "fields": fields}
        self._definitions[name] = definition
        return definition


def _nodes(node: Node) -> Iterator[Node]:
    """All nodes of the tree: a name is defined in it once."""
    yield node
    match node:
        case list():
            for branch in node:
                yield from _nodes(branch)
        case {"items": inner} | {"values": inner}:
            yield from _nodes(inner)
        case {"fields": fields}:
            for field in fields:
                yield from _nodes(field["type"])


def _may_be_empty(schema: AvroSchema, node: Node, within: tuple[str, ...]) -> bool:
    resolved = schema.resolved(node)
    match resolved:
        case "null":
            return True
        case {"type": "fixed", "size": size}:
            return bool(size == 0)
        case {"type": "record", "name": name, "fields": fields}:
            # A record that has itself without a union in between has no values at all.
            return name in within or all(_may_be_empty(schema, field["type"], (*within, name)) for field in fields)
    return False
