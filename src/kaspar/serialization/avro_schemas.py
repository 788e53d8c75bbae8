"""An Avro schema in the form that fastavro takes, and the properties of it that decide how its values are read.

In the JSON encoding a value of a union is an object with the name of its branch: {"string": "x"}. Records have no bytes
of their own in Avro. So a schema whose branches are each a record with one field of that name has the same bytes, and
fastavro reads them as the JSON encoding.

fastavro only needs the names of fields. Types are numbered instead, which avoids fastavro's own rules for names.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kaspar.schemas.avro import parse
from kaspar.schemas.avro.types import (
    Array,
    AvroType,
    Enumeration,
    Fixed,
    Map,
    NamedNode,
    Node,
    Primitive,
    Record,
    Union,
)

_SYMBOLS_PER_BRANCH: Final = 32


def load_schema(text: str, references: Mapping[str, str]) -> AvroType:
    """`references` are the texts that it refers to, dependencies first. Raises InvalidSchema."""
    return parse(text, references, validate_defaults=False).root


class FastavroSchema:
    """`branches_are_named` is for reading; a schema for writing has plain unions."""

    def __init__(self, root: AvroType, *, branches_are_named: bool) -> None:
        self._branches_are_named = branches_are_named
        self._names: dict[Node, str] = {}
        self._branches = 0
        self.root: Any = self._of(root)

    def branch_name(self, branch: AvroType) -> str:
        """fastavro's name for a branch of a union."""
        return self._names.get(branch, branch.kind)

    def _of(self, node: AvroType) -> Any:
        match node:
            case Primitive():
                return node.name
            case Array():
                return {"type": "array", "items": self._of(node.items)}
            case Map():
                return {"type": "map", "values": self._of(node.values)}
            case Union():
                return [self._branch(branch) for branch in node.branches]
            case Record() | Enumeration() | Fixed():
                return self._names[node] if node in self._names else self._definition(node)
        raise AssertionError(f"{node.kind} is no type of a parsed schema")

    def _definition(self, node: Record | Enumeration | Fixed) -> dict[str, Any]:
        name = self._names[node] = f"Type{len(self._names)}"
        match node:
            case Enumeration():
                return {"type": "enum", "name": name, "symbols": node.symbols}
            case Fixed():
                return {"type": "fixed", "name": name, "size": node.size}
        fields = [{"name": field.name, "type": self._of(field.type)} for field in node.fields]
        return {"type": "record", "name": name, "fields": fields}

    def _branch(self, node: AvroType) -> Any:
        if not self._branches_are_named or node.kind == "null":
            return self._of(node)
        self._branches += 1
        name = f"Branch{self._branches}"
        return {"type": "record", "name": name, "fields": [{"name": node.union_name, "type": self._of(node)}]}


def is_recursive(root: AvroType) -> bool:
    """Whether a value can contain values of its own type, so that its depth has no limit."""
    users = _users(root)
    left = {node: sum(1 for _ in _inner(node)) for node in users}
    done = [node for node, count in left.items() if count == 0]
    for node in done:  # the list grows: a type is done when all its inner types are
        for user in users[node]:
            left[user] -= 1
            if left[user] == 0:
                done.append(user)
    return len(done) < len(users)


def has_empty_items(root: AvroType) -> bool:
    """Whether an array may have items of zero bytes, so that a few bytes can stand for any number of items."""
    return any(_may_be_empty(node.items, frozenset()) for node in _users(root) if isinstance(node, Array))


def most_choices(root: AvroType) -> int:
    """The most symbols that fastavro may compare for one value. A branch of a union costs as much as several."""
    choices = [1]
    for node in _users(root):
        match node:
            case Enumeration():
                choices.append(len(node.symbols))
            case Union():
                choices.append(len(node.branches) * _SYMBOLS_PER_BRANCH)
    return max(choices)


def types_with(root: AvroType, kinds: frozenset[str]) -> set[AvroType]:
    """All types in the schema that are of one of these kinds, or contain one, directly or not."""
    users = _users(root)
    found = {node for node in users if node.kind in kinds}
    open_nodes = list(found)
    while open_nodes:
        new = set(users[open_nodes.pop()]) - found
        found |= new
        open_nodes.extend(new)
    return found


def _users(root: AvroType) -> dict[AvroType, list[AvroType]]:
    """Every type of the schema, with the types that directly contain it."""
    users: dict[AvroType, list[AvroType]] = {root: []}
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        for inner in _inner(node):
            if inner not in users:
                users[inner] = []
                open_nodes.append(inner)
            users[inner].append(node)
    return users


def _inner(node: AvroType) -> Iterator[AvroType]:
    match node:
        case Array():
            yield node.items
        case Map():
            yield node.values
        case Union():
            yield from node.branches
        case Record():
            yield from (field.type for field in node.fields)


def _may_be_empty(node: AvroType, within: frozenset[NamedNode]) -> bool:
    match node:
        case Fixed():
            return node.size == 0
        case Record():
            # A record that contains itself without a union in between has no values at all.
            inside = within | {node}
            return node in within or all(_may_be_empty(field.type, inside) for field in node.fields)
    return node.kind == "null"
