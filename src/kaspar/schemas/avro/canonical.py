"""The text of a schema as Java's Schema.toString writes it: attributes in Java's order, namespaces only where they
change, a named type in full where it first occurs and by its name after that."""

from collections.abc import Iterable, Iterator

from kaspar.schemas.avro.json_text import Json, to_json
from kaspar.schemas.avro.types import AvroType, Enumeration, Field, Fixed, ForwardReference, NamedNode, Order, Record
from kaspar.schemas.avro.writing import Piece, contents, unnamed, write
from kaspar.schemas.jackson import quoted


def to_text(root: AvroType, known_names: Iterable[str] = ()) -> str:
    """Compact JSON. Types of `known_names` are written by their name everywhere, since references define them."""
    return write(root, _Writer(set(known_names)).pieces)


class _Writer:
    def __init__(self, known_names: set[str]) -> None:
        self._known_names = known_names

    def pieces(self, node: AvroType, namespace: str | None) -> Iterator[Piece]:
        match node:
            case Record() | Enumeration() | Fixed():
                yield from self._named(node, namespace)
            case ForwardReference():  # only in error messages of the parser
                yield quoted(node.full_name)
            case _:
                yield from unnamed(node, namespace, _members(node.properties))

    def _named(self, node: Record | Enumeration | Fixed, namespace: str | None) -> Iterator[Piece]:
        if node.name.full in self._known_names:
            yield quoted(node.name.within(namespace))
            return
        self._known_names.add(node.name.full)
        yield _head(node, namespace)
        if not isinstance(node, Record) or node.known_fields is not None:  # None in error messages of the parser
            yield from contents(node, node.name.namespace, _field_attributes)
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
