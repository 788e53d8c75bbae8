"""A parsed schema as a graph of nodes, each of one kind. Compatibility rules compare these, and values are validated
against them.

The kinds are those of the library that Confluent's registry uses (org.everit.json.schema), because its rules are
defined on them: a schema with keywords of several kinds, for instance `type` and `enum`, is a CombinedSchema of them.
Nodes are compared by identity; `$ref` makes the graph cyclic.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

Number = int | Decimal


class Link:
    """A reference to a node that may not be loaded yet. It is filled once, before the graph is used."""

    __slots__ = ("_schema",)

    def __init__(self) -> None:
        self._schema: Schema | None = None

    @property
    def schema(self) -> "Schema":
        assert self._schema is not None
        return self._schema

    def fill(self, schema: "Schema") -> None:
        assert self._schema is None
        self._schema = schema


@dataclass(frozen=True, slots=True)
class Annotations:
    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: str | None = None
    """As JSON text; None if there is no default."""
    connect_type: str | None = None
    """The attribute `connect.type`, which Kafka Connect's converter writes."""


NO_ANNOTATIONS = Annotations()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schema:
    annotations: Annotations = NO_ANNOTATIONS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnySchema(Schema):
    """`{}` or `true`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FalseSchema(Schema):
    pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NullSchema(Schema):
    pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BooleanSchema(Schema):
    pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StringSchema(Schema):
    required_type: bool = False
    """Whether a value has to be a string, or the keywords only apply if it is one. The same in the next three."""
    min_length: Number | None = None
    max_length: Number | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberSchema(Schema):
    required_type: bool = False
    integer: bool = False
    integral_floats: bool = True
    """Whether 1.0 is an integer, as since draft 6."""
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    excludes_minimum: bool = False
    """Draft 4's `"exclusiveMinimum": true`, which Confluent's rules do not compare."""
    excludes_maximum: bool = False
    multiple_of: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArraySchema(Schema):
    required_type: bool = False
    all_items: Link | None = None
    items: tuple[Link, ...] = ()
    """The schemas of the first items (`prefixItems`, or `items` as a list)."""
    allows_additional: bool = True
    additional: Link | None = None
    checks_additional: bool = True
    """Whether `allows_additional` and `additional` apply to values. Up to 2019-09 they do so only beside a list of
    schemas, but they are always compared.
    """
    evaluates_all: bool = False
    """Whether a keyword gives a schema for additional items, even `true`, so that none are left unevaluated."""
    unevaluated: Link | None = None
    min_items: Number | None = None
    max_items: Number | None = None
    unique: bool = False
    contains: Link | None = None
    min_contains: Number | None = None
    """Since 2019-09, and only beside `contains`."""
    max_contains: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObjectSchema(Schema):
    required_type: bool = False
    properties: Mapping[str, Link]
    required: frozenset[str] = frozenset()
    patterns: Mapping[str, Link]
    allows_additional: bool = True
    additional: Link | None = None
    evaluates_all: bool = False
    """Whether `additionalProperties` is present, even as `true`, so that none are left unevaluated."""
    unevaluated: Link | None = None
    min_properties: Number | None = None
    max_properties: Number | None = None
    property_names: Link | None = None
    dependent_required: Mapping[str, frozenset[str]]
    dependent_schemas: Mapping[str, Link]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnumSchema(Schema):
    values: frozenset[Hashable]
    """The identities of the values (`kaspar.schemas.json_schema.values`)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConstSchema(Schema):
    value: Hashable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NotSchema(Schema):
    negated: Link


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConditionalSchema(Schema):
    condition: Link | None = None
    consequence: Link | None = None
    alternative: Link | None = None


class Criterion(Enum):
    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CombinedSchema(Schema):
    criterion: Criterion
    subschemas: tuple[Link, ...]
    distinct: tuple[Link, ...]
    """`subschemas` without those that have the same text as an earlier one."""
    generated: bool = False
    """Whether it combines a schema's own keywords: ALL of its kinds, or ANY of a list of types."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceSchema(Schema):
    target: Link


def filled(schema: Schema) -> Link:
    link = Link()
    link.fill(schema)
    return link


def dereferenced(schema: Schema) -> Schema:
    """The end of a chain of references. A parsed schema has no cycle of only references."""
    while isinstance(schema, ReferenceSchema):
        schema = schema.target.schema
    return schema
