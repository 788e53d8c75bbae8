"""The text that Confluent's `normalize` makes of a schema (AvroSchemaUtils.toNormalizedString): names are full names,
and unordered parts are sorted: properties, aliases, the members of objects.

The registry reads this text and stores its canonical form, so only differences that survive that matter here.
"""

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import TypeAlias

from kaspar.schemas.avro.json_text import Float32, Json, to_json
from kaspar.schemas.avro.logical import logical_type
from kaspar.schemas.avro.types import (
    Array,
    AvroType,
    Enumeration,
    Field,
    Fixed,
    ForwardReference,
    Map,
    NamedNode,
    Record,
    Union,
)
from kaspar.schemas.avro.writing import Piece, contents, unnamed, write
from kaspar.schemas.jackson import quoted


class _Nothing(Enum):
    """Stands for a default that Java drops because it is not a value of the first branch of a union."""

    NOTHING = auto()


JsonOrNothing: TypeAlias = "Json | _Nothing"


def to_normalized_text(root: AvroType, known_names: Iterable[str] = ()) -> str:
    return write(root, _Normalizer(set(known_names)).pieces)


class _Normalizer:
    def __init__(self, known_names: set[str]) -> None:
        self._known_names = known_names

    def pieces(self, node: AvroType, namespace: str | None) -> Iterator[Piece]:
        match node:
            case Record() | Enumeration() | Fixed():
                yield from self._named(node)
            case ForwardReference():
                raise AssertionError(f"{node.full_name} was not linked")
            case _:
                yield from unnamed(node, namespace, _sorted_properties(node))

    def _named(self, node: Record | Enumeration | Fixed) -> Iterator[Piece]:
        name = quoted(node.name.full)
        if node.name.full in self._known_names:
            yield name
            return
        self._known_names.add(node.name.full)
        yield f'{{"name":{name},"type":"{node.kind}"'
        yield from contents(node, None, _field_attributes)
        yield f"{_doc_and_aliases(node)}{_sorted_properties(node)}}}"


def _doc_and_aliases(node: NamedNode) -> str:
    doc = f',"doc":{quoted(node.doc)}' if node.doc else ""
    return doc + _sorted_aliases(node.alias_names())


def _field_attributes(field: Field) -> str:
    parts = [f',"order":"{field.order.value}"']
    if field.doc is not None:
        parts.append(f',"doc":{quoted(field.doc)}')
    parts.append(_sorted_aliases(field.aliases))
    if field.has_default and not isinstance(default := _default_value(field.default, field.type), _Nothing):
        parts.append(f',"default":{to_json(_sorted(default))}')
    parts += (f",{quoted(key)}:{to_json(_sorted(field.properties[key]))}" for key in sorted(field.properties))
    return "".join(parts)


def _sorted_aliases(aliases: list[str]) -> str:
    return f',"aliases":[{",".join(map(quoted, sorted(aliases)))}]' if aliases else ""


def _sorted_properties(node: AvroType) -> str:
    """The attributes of a logical type come first."""
    first: tuple[str, ...] = ()
    if (logical := logical_type(node)) is not None:
        first = ("logicalType",)
        if logical == "decimal":
            first += ("precision", "scale") if node.properties.get("scale") else ("precision",)
    rest = sorted(node.properties.keys() - set(first))
    return "".join(f",{quoted(key)}:{to_json(_sorted(node.properties[key]))}" for key in (*first, *rest))


def _sorted(value: Json) -> Json:
    match value:
        case list():
            return [_sorted(element) for element in value]
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case _:
            return value


def _default_value(value: Json, of_type: AvroType) -> JsonOrNothing:
    """The default after Java's JacksonUtils.toObject: numbers have the precision of their type, and a union counts as
    its first branch, whatever the value is."""
    while isinstance(of_type, Union):
        if not of_type.branches:
            return value
        of_type = of_type.branches[0]
    match value:
        case None | bool():
            return value
        case int() | float():
            return _number_value(value, of_type.kind)
        case str():
            return _text_value(value, of_type.kind)
        case list():
            if not isinstance(of_type, Array):
                return _Nothing.NOTHING
            return _present(_default_value(element, of_type.items) for element in value)
        case dict():
            return _object_value(value, of_type)


def _number_value(value: int | float, kind: str) -> JsonOrNothing:
    is_long = isinstance(value, int) and -(2**63) <= value < 2**63
    match kind:
        case "float" if is_long or isinstance(value, float):
            return Float32(value)
        case "double" if is_long or isinstance(value, float):
            return float(value)
        case "int" | "long" if is_long:
            return value
        case _:
            return _Nothing.NOTHING


def _text_value(value: str, kind: str) -> JsonOrNothing:
    match kind:
        case "string" | "enum":
            return value
        case "bytes" | "fixed":
            return value.encode("latin-1", "replace").decode("latin-1")
        case _:
            return _Nothing.NOTHING


def _object_value(value: dict[str, Json], of_type: AvroType) -> JsonOrNothing:
    match of_type:
        case Map():
            types = dict.fromkeys(value, of_type.values)
        case Record():
            types = {field.name: field.type for field in of_type.fields}
        case _:
            types = {}
    members = {key: _default_value(member, types[key]) if key in types else member for key, member in value.items()}
    return {key: member for key, member in members.items() if not isinstance(member, _Nothing)}


def _present(values: Iterable[JsonOrNothing]) -> list[Json]:
    return [value for value in values if not isinstance(value, _Nothing)]
