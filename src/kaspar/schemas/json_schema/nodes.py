"""A parsed schema as a graph of nodes, each of one kind: what the compatibility rules compare, and what values are
checked against.

The kinds are those of the library that Confluent's registry uses (org.everit.json.schema), because its rules are
defined on them: a schema with keywords of several kinds, for instance `type` and `enum`, is a CombinedSchema of them.
Nodes are equal only if they are the same; `$ref` makes the graph cyclic.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

Number = int | Decimal


class Link:
    """The place of a node that may not be loaded yet. It is filled once, before anybody else sees the graph."""

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
    """`connect.type`, which Kafka Connect's converter writes."""


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
    """Whether a value has to be a string, or the keywords only apply if it is one. Likewise in the next three."""
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
    """Of the first items (`prefixItems`, or `items` as a list)."""
    allows_additional: bool = True
    additional: Link | None = None
    checks_additional: bool = True
    """Whether the last two apply to values. Up to 2019-09 they only do beside a list of schemas, but are compared."""
    evaluates_all: bool = False
    """Whether a keyword says what additional items are, be it `true`, so that none is left unevaluated."""
    unevaluated: Link | None = None
    min_items: Number | None = None
    max_items: Number | None = None
    unique: bool = False
    contains: Link | None = None
    min_contains: Number | None = None
    """Since 2019-09, and there only beside `contains`."""
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
    """Whether `additionalProperties` is there, be it `true`, so that none is left unevaluated."""
    unevaluated: Link | None = None
    min_properties: Number | None = None
    max_properties: Number | None = None
    property_names: Link | None = None
    dependent_required: Mapping[str, frozenset[str]]
    dependent_schemas: Mapping[str, Link]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnumSchema(Schema):
    values: frozenset[Hashable]
    """Identities of the values (`kaspar.schemas.json_schema.values`)."""


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
    """`subschemas` without those whose text is the same as an earlier one's."""
    generated: bool = False
    """Made of one schema's own keywords: ALL of its kinds, or ANY of a list of types."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceSchema(Schema):
    target: Link


def filled(schema: Schema) -> Link:
    link = Link()
    link.fill(schema)
    return link


def dereferenced(schema: Schema) -> Schema:
    """What a chain of references ends at. A parsed schema has no cycle of references only."""
    while isinstance(schema, ReferenceSchema):
        schema = schema.target.schema
    return schema
