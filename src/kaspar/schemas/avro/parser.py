"""Parses the text of a schema into its types, with the rules of Java's Schema.Parser (Avro 1.12).

One parser reads the texts of the references first, then the schema: the named types of earlier texts are visible in
later ones. Within a text a name may also be used before its definition.
"""

import re
from collections.abc import Callable
from typing import Final

from kaspar.schemas.avro.defaults import DefaultChecks
from kaspar.schemas.avro.json_text import Json, read_json, to_json
from kaspar.schemas.avro.types import (
    PRIMITIVES,
    Array,
    AvroType,
    Enumeration,
    Field,
    Fixed,
    ForwardReference,
    Map,
    Name,
    Order,
    Primitive,
    Record,
    Union,
)
from kaspar.schemas.jackson import MAX_CHARACTERS
from kaspar.schemas.schema import InvalidSchema

MAX_NAMED_TYPES: Final = 10_000
# The longest array of a JVM, which limits the size of a fixed.
MAX_FIXED_SIZE: Final = 2**31 - 1 - 8

_TYPE_ATTRIBUTES: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_ENUM_ATTRIBUTES: Final = _TYPE_ATTRIBUTES | {"default"}
_FIELD_ATTRIBUTES: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
# Hexadecimal numbers, which Java reads as well, are refused.
_JAVA_NUMBER: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_SHOWN_CHARACTERS: Final = 200

JsonObject = dict[str, Json]


class Parser:
    """Without `validate_defaults` a default may be of another type than its field: versions of Avro before 1.9 allowed
    that, and such schemas may have been stored."""

    def __init__(self, *, validate_defaults: bool) -> None:
        self._named: dict[str, Fixed | Enumeration | Record] = {}
        self._defaults = DefaultChecks() if validate_defaults else None
        self._characters = 0
        self._has_forward_references = False
        self._referring: list[Field | Array | Map | Union] = []
        self._readers: dict[str, Callable[[JsonObject, str | None], AvroType]] = {
            "record": self._record,
            "error": self._record,
            "enum": self._enumeration,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }

    def parse(self, text: str) -> AvroType:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise InvalidSchema(f"The schema and its references have more than {MAX_CHARACTERS} characters")
        self._referring.clear()
        self._has_forward_references = False
        parsed = self._type(read_json(text), None)
        if self._has_forward_references:
            parsed = self._link(parsed)
        return parsed

    # The kinds of type.

    def _type(self, node: Json, namespace: str | None) -> AvroType:
        match node:
            case str():
                return self._by_name(node, namespace)
            case list():
                return self._union(node, namespace)
            case dict():
                return self._by_kind(node, namespace)
            case _:
                raise InvalidSchema(f"Schema not yet supported: {_shown(node)}")

    def _by_kind(self, node: JsonObject, namespace: str | None) -> AvroType:
        if (kind := _text(node, "type")) is None:
            raise InvalidSchema(f"No type: {_shown(node)}")
        if kind in PRIMITIVES:
            return Primitive(kind, properties=_properties(node, _TYPE_ATTRIBUTES))
        reader = self._readers.get(kind)
        return reader(node, namespace) if reader else self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str | None) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        full_name = f"{namespace}.{name}" if namespace is not None and "." not in name else name
        known = self._named.get(full_name) or self._named.get(name)
        if known is None:
            self._has_forward_references = True
            return ForwardReference(full_name)
        return known

    # Unnamed types.

    def _array(self, node: JsonObject, namespace: str | None) -> Array:
        if "items" not in node:
            raise InvalidSchema(f"Array has no items type: {_shown(node)}")
        parsed = Array(self._type(node["items"], namespace), properties=_portable_properties(node))
        self._referring.append(parsed)
        return parsed

    def _map(self, node: JsonObject, namespace: str | None) -> Map:
        if "values" not in node:
            raise InvalidSchema(f"Map has no values type: {_shown(node)}")
        parsed = Map(self._type(node["values"], namespace), properties=_portable_properties(node))
        self._referring.append(parsed)
        return parsed

    def _union(self, node: list[Json], namespace: str | None) -> Union:
        parsed = Union([self._type(branch, namespace) for branch in node])
        _check_branches(parsed)
        self._referring.append(parsed)
        return parsed

    # Named types.

    def _record(self, node: JsonObject, namespace: str | None) -> Record:
        parsed = Record(_name(node, namespace), _text(node, "doc"), node["type"] == "error")
        if parsed.name.full in self._named:
            raise InvalidSchema(f"Can't redefine: {parsed.name.full}")
        self._define(parsed)
        members = node.get("fields")
        if not isinstance(members, list):
            raise InvalidSchema(f"Record has no fields: {_shown(node)}")
        fields: dict[str, Field] = {}
        for member in members:
            parsed_field = self._field(member, parsed.name.namespace)
            if parsed_field.name in fields:
                raise InvalidSchema(f"Duplicate field {parsed_field.name} in record {parsed.name.full}")
            fields[parsed_field.name] = parsed_field
        parsed.known_fields = list(fields.values())
        parsed.properties = _portable_properties(node)
        parsed.aliases = _type_aliases(node, parsed.name)
        return parsed

    def _field(self, node: Json, namespace: str | None) -> Field:
        if not isinstance(node, dict) or not isinstance(name := node.get("name"), str):
            raise InvalidSchema(f"No field name: {_shown(node)}")
        if "type" not in node:
            raise InvalidSchema(f"No field type: {_shown(node)}")
        parsed = Field(
            name=_valid_name(name),
            type=self._type(node["type"], namespace),
            doc=_text(node, "doc"),
            has_default="default" in node,
            default=node.get("default"),
            order=_order(node),
            aliases=_aliases(node),
            properties=_properties(node, _FIELD_ATTRIBUTES),
        )
        if parsed.type.kind in ("float", "double") and isinstance(parsed.default, str):
            parsed.default = _number_in_text(parsed.default)
        if self._defaults is not None:
            self._defaults.check(parsed)
        self._referring.append(parsed)
        return parsed

    def _enumeration(self, node: JsonObject, namespace: str | None) -> Enumeration:
        name, doc = _name(node, namespace), _text(node, "doc")
        texts = node.get("symbols")
        if not isinstance(texts, list):
            raise InvalidSchema(f"Enum has no symbols: {_shown(node)}")
        symbols: dict[str, None] = {}
        for text in texts:
            symbol = _valid_name(text if isinstance(text, str) else None)
            if symbol in symbols:
                raise InvalidSchema(f"Duplicate enum symbol: {symbol}")
            symbols[symbol] = None
        default = _text(node, "default")
        if default is not None and default not in symbols:
            raise InvalidSchema(f"The Enum Default: {default} is not in the enum symbol set: [{', '.join(symbols)}]")
        parsed = Enumeration(name, doc, list(symbols), default)
        match self._named.get(name.full):
            case None:
                self._define(parsed)
            case Enumeration(symbols=known, properties=properties) if known == parsed.symbols and not properties:
                pass  # Java lets a text define the same enum again.
            case _:
                raise InvalidSchema(f"Can't redefine: {name.full}")
        parsed.properties = _properties(node, _ENUM_ATTRIBUTES)
        parsed.aliases = _type_aliases(node, name)
        return parsed

    def _fixed(self, node: JsonObject, namespace: str | None) -> Fixed:
        name, doc = _name(node, namespace), _text(node, "doc")
        size = node.get("size")
        if type(size) is not int or not 0 <= size <= MAX_FIXED_SIZE:
            raise InvalidSchema(f"Invalid or no size: {_shown(node)}")
        parsed = Fixed(name, doc, size)
        match self._named.get(name.full):
            case None:
                self._define(parsed)
            case Fixed(size=known, properties=properties) if known == size and not properties:
                pass  # Java lets a text define the same fixed again.
            case _:
                raise InvalidSchema(f"Can't redefine: {name.full}")
        parsed.properties = _properties(node, _TYPE_ATTRIBUTES)
        parsed.aliases = _type_aliases(node, name)
        return parsed

    def _define(self, named: Fixed | Enumeration | Record) -> None:
        for part in named.name.namespace.split(".") if named.name.namespace else ():
            if wrong := _fault_of_name(part):
                raise InvalidSchema(f'Namespace part "{part[:_SHOWN_CHARACTERS]}" is invalid: {wrong}')
        if len(self._named) == MAX_NAMED_TYPES:
            raise InvalidSchema(f"The schema and its references have more than {MAX_NAMED_TYPES} named types")
        self._named[named.name.full] = named

    # Names that were used before their definition.

    def _link(self, root: AvroType) -> AvroType:
        late_fields = []
        for node in self._referring:
            match node:
                case Field(type=ForwardReference()):
                    late_fields.append(node)
                    node.type = self._target(node.type)
                case Field(type=Array() | Map() | Union()):
                    late_fields.append(node)
                case Array():
                    node.items = self._target(node.items)
                case Map():
                    node.values = self._target(node.values)
                case Union():
                    node.branches = [self._target(branch) for branch in node.branches]
                    _check_branches(node)
        if self._defaults is not None:
            self._defaults.forget()
            for node in late_fields:
                self._defaults.check(node)
        return self._target(root)

    def _target(self, node: AvroType) -> AvroType:
        if not isinstance(node, ForwardReference):
            return node
        if (target := self._named.get(node.full_name)) is None:
            raise InvalidSchema(f"Undefined schema: {node.full_name}")
        return target


def _check_branches(union: Union) -> None:
    names: set[str] = set()
    for branch in union.branches:
        if isinstance(branch, Union):
            raise InvalidSchema("Nested union: a union may not immediately contain another one")
        if branch.union_name in names:
            raise InvalidSchema(f"Duplicate in union:{branch.union_name}")
        names.add(branch.union_name)


def _name(node: JsonObject, namespace: str | None) -> Name:
    text = _text(node, "name")
    if text is None:
        raise InvalidSchema(f"No name in schema: {_shown(node)}")
    own_namespace = _text(node, "namespace")
    name = Name.of(text, namespace if own_namespace is None else own_namespace)
    _valid_name(name.simple)
    if name.full in PRIMITIVES:
        raise InvalidSchema(f"Schemas may not be named after primitives: {name.full}")
    return name


def _valid_name(name: str | None) -> str:
    if name is None:
        raise InvalidSchema("Null name")
    if wrong := _fault_of_name(name):
        raise InvalidSchema(wrong)
    return name


def _fault_of_name(name: str) -> str | None:
    """The rules of Java's NameValidator.UTF_VALIDATOR: letters of any script, but only of the basic plane."""
    if not name:
        return "Empty name"
    if not (_is_letter(name[0]) or name[0] == "_"):
        return f"Illegal initial character: {name[:_SHOWN_CHARACTERS]}"
    if not all(_is_letter(character) or _is_digit(character) or character == "_" for character in name):
        return f"Illegal character in: {name[:_SHOWN_CHARACTERS]}"
    return None


def _is_letter(character: str) -> bool:
    return character.isalpha() and character <= "\uffff"


def _is_digit(character: str) -> bool:
    return character.isdecimal() and character <= "\uffff"


def _type_aliases(node: JsonObject, name: Name) -> list[Name]:
    names = (Name.of(alias, name.namespace) for alias in _aliases(node))
    distinct = list(dict.fromkeys(names))
    for alias in distinct:
        _valid_name(alias.simple)
    return distinct


def _aliases(node: JsonObject) -> list[str]:
    if "aliases" not in node:
        return []
    aliases = node["aliases"]
    if not isinstance(aliases, list):
        raise InvalidSchema(f"aliases not an array: {_shown(node)}")
    texts = [alias for alias in aliases if isinstance(alias, str)]
    if len(texts) < len(aliases):
        raise InvalidSchema(f"alias not a string: {_shown(aliases)}")
    return list(dict.fromkeys(texts))


def _order(node: JsonObject) -> Order:
    if "order" not in node:
        return Order.ASCENDING
    text = node["order"]
    try:
        return Order(text.lower() if isinstance(text, str) else None)
    except ValueError:
        raise InvalidSchema(f"The order of a field is none of ascending, descending, ignore: {_shown(text)}") from None


def _number_in_text(text: str) -> float:
    """Java parses the text of such a default with Double.parseDouble, which accepts NaN and the infinities."""
    if _JAVA_NUMBER.fullmatch(text.strip()) is None:
        raise InvalidSchema(f"The default of a number is no number: {_shown(text)}")
    number = text.strip().rstrip("fFdD")
    return float(number)


def _text(node: JsonObject, attribute: str) -> str | None:
    """The attribute's text. Avro ignores these attributes if they are not strings."""
    value = node.get(attribute)
    return value if isinstance(value, str) else None


def _properties(node: JsonObject, attributes: frozenset[str]) -> JsonObject:
    return {key: value for key, value in node.items() if key not in attributes}


def _portable_properties(node: JsonObject) -> JsonObject:
    """The properties of an array or a map. Java copies these types when it links names, which fails for an integer that
    does not fit into a long.
    """
    properties = _properties(node, _TYPE_ATTRIBUTES)
    pending: list[Json] = list(properties.values())
    while pending:
        match pending.pop():
            case list() as elements:
                pending += elements
            case dict() as members:
                pending += members.values()
            case int() as number if not -(2**63) <= number < 2**63:
                raise InvalidSchema(f"A property has an integer of more than 64 bits: {_shown(number)}")
    return properties


def _shown(node: Json) -> str:
    text = to_json(node)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
