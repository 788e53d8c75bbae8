"""The types of Avro as a graph: a named type is one object wherever it is used, so recursive records are cycles.

Nodes are compared by identity. Only the parser changes them, until it has linked all names.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from kaspar.schemas.avro.json_text import Json

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_TYPE_NAMES: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


@dataclass(frozen=True, slots=True)
class Name:
    """A full name in two parts. The namespace is None for the empty one."""

    simple: str
    namespace: str | None

    @classmethod
    def of(cls, name: str, namespace: str | None) -> "Name":
        """A name with dots contains its namespace, as in Java's Schema.Name."""
        own_namespace, dot, simple = name.rpartition(".")
        return cls(simple, (own_namespace if dot else namespace) or None)

    @property
    def full(self) -> str:
        return self.simple if self.namespace is None else f"{self.namespace}.{self.simple}"

    def within(self, namespace: str | None) -> str:
        """The name as it is written in a namespace: the simple name if that means the same."""
        is_short = self.namespace is not None and self.namespace == namespace and self.simple not in _TYPE_NAMES
        return self.simple if is_short else self.full


class Order(Enum):
    """How a field takes part in the sort order of records."""

    ASCENDING = "ascending"
    DESCENDING = "descending"
    IGNORE = "ignore"


@dataclass(slots=True, eq=False)
class Node:
    """What all types have in common: the attributes that Avro does not define, in the order of the text."""

    properties: dict[str, Json] = field(default_factory=dict, kw_only=True)

    @property
    def kind(self) -> str:
        """Avro's name for the kind of type, such as `record`."""
        return type(self).__name__.lower()

    @property
    def union_name(self) -> str:
        """The name that has to be unique within a union."""
        return self.kind


@dataclass(slots=True, eq=False)
class Primitive(Node):
    name: str

    @property
    def kind(self) -> str:
        return self.name


@dataclass(slots=True, eq=False)
class Array(Node):
    items: "AvroType"


@dataclass(slots=True, eq=False)
class Map(Node):
    values: "AvroType"


@dataclass(slots=True, eq=False)
class Union(Node):
    branches: list["AvroType"]


@dataclass(slots=True, eq=False)
class NamedNode(Node):
    name: Name
    doc: str | None
    # In the order of the text, without duplicates.
    aliases: list[Name] = field(default_factory=list, kw_only=True)

    @property
    def union_name(self) -> str:
        return self.name.full

    def alias_names(self) -> list[str]:
        """The full names. Without a namespace a name starts with a dot if this type has a namespace."""
        no_namespace = "." if self.name.namespace is not None else ""
        return [alias.full if alias.namespace else no_namespace + alias.simple for alias in self.aliases]


@dataclass(slots=True, eq=False)
class Fixed(NamedNode):
    size: int


@dataclass(slots=True, eq=False)
class Enumeration(NamedNode):
    symbols: list[str]
    default: str | None

    @property
    def kind(self) -> str:
        return "enum"


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: "AvroType"
    doc: str | None
    has_default: bool
    default: Json
    order: Order
    aliases: list[str]
    properties: dict[str, Json]


@dataclass(slots=True, eq=False)
class Record(NamedNode):
    is_error: bool
    # None while the parser is inside the record
    known_fields: list[Field] | None = None

    @property
    def fields(self) -> list[Field]:
        assert self.known_fields is not None
        return self.known_fields


@dataclass(slots=True, eq=False)
class ForwardReference(Node):
    """A name that is defined later in the text. The parser replaces it at the end of the text."""

    full_name: str

    @property
    def union_name(self) -> str:
        return f"forward reference to {self.full_name}"


AvroType: TypeAlias = Primitive | Array | Map | Union | Fixed | Enumeration | Record | ForwardReference
