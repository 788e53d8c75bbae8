"""The text of a schema as Java's Schema.toString writes it: attributes in Java's order, namespaces only where they
change, a named type in full where it first occurs and by its name after that.

What is nested is not written by recursion: a chain of records, each the type of the next one's field, may be long.
"""

from collections.abc import Callable, Iterable, Iterator

from kaspar.schemas.avro.json_text import Json, quoted, to_json
from kaspar.schemas.avro.types import (
    Array,
    AvroType,
    Enumeration,
    Field,
    Fixed,
    ForwardReference,
    Map,
    NamedNode,
    Order,
    Primitive,
    Record,
    Union,
)

# A piece of text, or a type to be written within a namespace.
Piece = str | tuple[AvroType, str | None]


def to_text(root: AvroType, known_names: Iterable[str] = ()) -> str:
    """Compact JSON. Types of `known_names` are written by their name everywhere, since references define them."""
    return write(root, _Writer(set(known_names)).pieces)


def write(root: AvroType, pieces: Callable[[AvroType, str | None], Iterator[Piece]]) -> str:
    """All pieces of a type, in order, with those of its inner types in their place."""
    written: list[str] = []
    pending: list[Iterator[Piece]] = [pieces(root, None)]
    while pending:
        match next(pending[-1], None):
            case None:
                pending.pop()
            case str(text):
                written.append(text)
            case (node, namespace):
                pending.append(pieces(node, namespace))
    return "".join(written)


class _Writer:
    def __init__(self, known_names: set[str]) -> None:
        self._known_names = known_names

    def pieces(self, node: AvroType, namespace: str | None) -> Iterator[Piece]:
        match node:
            case Primitive(name=name) if not node.properties:
                yield quoted(name)
            case Primitive(name=name):
                yield f'{{"type":{quoted(name)}{_members(node.properties)}}}'
            case Array():
                yield '{"type":"array","items":'
                yield node.items, namespace
                yield f"{_members(node.properties)}}}"
            case Map():
                yield '{"type":"map","values":'
                yield node.values, namespace
                yield f"{_members(node.properties)}}}"
            case Union():
                yield "["
                for index, branch in enumerate(node.branches):
                    yield "," if index else ""
                    yield branch, namespace
                yield "]"
            case Record() | Enumeration() | Fixed():
                yield from self._named(node, namespace)
            case ForwardReference():  # only in a message of the parser
                yield quoted(node.full_name)

    def _named(self, node: Record | Enumeration | Fixed, namespace: str | None) -> Iterator[Piece]:
        if node.name.full in self._known_names:
            yield quoted(node.name.within(namespace))
            return
        self._known_names.add(node.name.full)
        yield _head(node, namespace)
        match node:
            case Record(known_fields=None):  # only in a message of the parser
                pass
            case Record():
                yield ',"fields":['
                for index, field in enumerate(node.fields):
                    yield f'{"," if index else ""}{{"name":{quoted(field.name)},"type":'
                    yield field.type, node.name.namespace
                    yield f"{_field_attributes(field)}}}"
                yield "]"
            case Enumeration():
                yield f',"symbols":[{",".join(map(quoted, node.symbols))}]'
                yield f',"default":{quoted(node.default)}' if node.default is not None else ""
            case Fixed():
                yield f',"size":{node.size}'
        yield _members(node.properties)
        if node.aliases:
            aliases = (alias.within(node.name.namespace) for alias in node.aliases)
            yield f',"aliases":[{",".join(map(quoted, aliases))}]'
        yield "}"


def _head(node: NamedNode, namespace: str | None) -> str:
    kind = "error" if isinstance(node, Record) and node.is_error else node.kind
    parts = [f'{{"type":"{kind}","name":{quoted(node.name.simple)}']
    if node.name.namespace != namespace:
        parts.append(f'"namespace":{quoted(node.name.namespace or "")}')
    if node.doc is not None:
        parts.append(f'"doc":{quoted(node.doc)}')
    return ",".join(parts)


def _field_attributes(field: Field) -> str:
    parts = [f',"doc":{quoted(field.doc)}'] if field.doc is not None else []
    if field.has_default:
        parts.append(f',"default":{to_json(field.default)}')
    if field.order is not Order.ASCENDING:
        parts.append(f',"order":"{field.order.value}"')
    if field.aliases:
        parts.append(f',"aliases":[{",".join(map(quoted, field.aliases))}]')
    return "".join((*parts, _members(field.properties)))


def _members(properties: dict[str, Json]) -> str:
    return "".join(f",{quoted(key)}:{to_json(value)}" for key, value in properties.items())
