"""Builds the node of one schema object from its keywords: one part per kind of schema, combined if there are several.

The rules are those of Confluent's loaders. Up to draft 7 a `$ref` hides its siblings. A type makes a node with all
keywords of its kind; keywords of another kind make a further node that only applies to values of that kind.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from kaspar.schemas.json_schema.drafts import Draft
from kaspar.schemas.json_schema.keywords import (
    NUMBER_KEYWORDS,
    Keywords,
    array_keywords,
    object_keywords,
    string_keywords,
)
from kaspar.schemas.json_schema.nodes import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EnumSchema,
    Link,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    ReferenceSchema,
    Schema,
    StringSchema,
    filled,
)
from kaspar.schemas.json_schema.patterns import problem_with
from kaspar.schemas.json_schema.text import Json, write_json
from kaspar.schemas.json_schema.values import identity
from kaspar.schemas.schema import InvalidSchema

_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


class Links(Protocol):
    def contained(self, contents: Json, name: str) -> Link:
        """A subschema. `name` is its place in this object."""

    def referred(self, ref: str) -> Link: ...


class SchemaObject:
    def __init__(self, keywords: Keywords, links: Links) -> None:
        self._keywords: Final = keywords
        self._links: Final = links
        self._draft: Final = keywords.draft

    def node(self) -> Schema:
        annotations = self._keywords.annotations()
        match self._parts():
            case []:
                return AnySchema(annotations=annotations)
            case [only]:
                return replace(only, annotations=annotations)
            case parts:
                links = tuple(map(filled, parts))
                return CombinedSchema(
                    criterion=Criterion.ALL, subschemas=links, distinct=links, generated=True, annotations=annotations
                )

    def _parts(self) -> Sequence[Schema]:
        references = self._references()
        if references and not self._draft.modern:
            return references
        return [*references, *self._logic(), *self._types()]

    def _references(self) -> list[Schema]:
        names = ("$ref", "$dynamicRef", "$recursiveRef") if self._draft.modern else ("$ref",)
        refs = [self._keywords.string(name) for name in names]
        return [ReferenceSchema(target=self._links.referred(ref)) for ref in refs if ref is not None]

    # Keywords that apply to values of any type.

    def _logic(self) -> list[Schema]:
        members = self._keywords.members
        parts: list[Schema] = []
        if "enum" in members:
            parts.append(EnumSchema(values=frozenset(map(identity, self._keywords.array("enum")))))
        parts += [self._combined(criterion) for criterion in Criterion if criterion.value in members]
        if "not" in members:
            parts.append(NotSchema(negated=self._child("not")))
        if "const" in members and self._draft is not Draft.DRAFT_4:
            parts.append(ConstSchema(value=identity(members["const"])))
        has_conditions = self._draft not in (Draft.DRAFT_4, Draft.DRAFT_6)
        if has_conditions and self._keywords.has_any(("if", "then", "else")):
            parts.append(
                ConditionalSchema(
                    condition=self._maybe("if"), consequence=self._maybe("then"), alternative=self._maybe("else")
                )
            )
        return parts

    def _combined(self, criterion: Criterion) -> CombinedSchema:
        contents = self._keywords.array(criterion.value)
        links = self._children(criterion.value)
        distinct: dict[str, Link] = {}
        for subschema, link in zip(contents, links, strict=True):
            distinct.setdefault(write_json(subschema, sort_keys=True), link)
        return CombinedSchema(criterion=criterion, subschemas=links, distinct=tuple(distinct.values()))

    # Keywords of one type.

    def _types(self) -> list[Schema]:
        names = self._required_types()
        parts = [self._of_type(name) for name in names]
        if isinstance(self._keywords.members.get("type"), list):
            links = dict(zip(names, map(filled, parts), strict=True))
            subschemas = tuple([links[name] for name in names])
            distinct = tuple(links.values())
            parts = [CombinedSchema(criterion=Criterion.ANY, subschemas=subschemas, distinct=distinct, generated=True)]
        return parts + self._untyped(names)

    def _untyped(self, required: Sequence[str]) -> list[Schema]:
        has_any = self._keywords.has_any
        parts: list[Schema] = []
        if "array" not in required and has_any(array_keywords(self._draft)):
            parts.append(self._array())
        if "object" not in required and has_any(object_keywords(self._draft)):
            parts.append(self._object())
        if not {"integer", "number"}.intersection(required) and has_any(NUMBER_KEYWORDS):
            parts.append(self._number())
        if "string" not in required and has_any(string_keywords(self._draft)):
            parts.append(self._string())
        return parts

    def _required_types(self) -> list[str]:
        value = self._keywords.members.get("type", [])
        names = [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]
        if len(names) < (len(value) if isinstance(value, list) else 1) or not set(names) <= set(_TYPES):
            raise self._keywords.wrong("type", f"one or several of {', '.join(_TYPES)}")
        return names

    def _of_type(self, name: str) -> Schema:
        match name:
            case "null":
                return NullSchema()
            case "boolean":
                return BooleanSchema()
            case "string":
                return replace(self._string(), required_type=True)
            case "array":
                return replace(self._array(), required_type=True)
            case "object":
                return replace(self._object(), required_type=True)
            case _:
                return replace(self._number(), required_type=True, integer=name == "integer")

    def _string(self) -> StringSchema:
        keywords = self._keywords
        pattern = keywords.string("pattern")
        if pattern is not None:
            self._check_pattern(pattern, "pattern")
        return StringSchema(
            min_length=keywords.integer("minLength"), max_length=keywords.integer("maxLength"), pattern=pattern
        )

    def _number(self) -> NumberSchema:
        keywords = self._keywords
        multiple_of = keywords.number("multipleOf")
        if multiple_of is not None and multiple_of <= 0:
            raise keywords.wrong("multipleOf", "greater than 0")
        schema = NumberSchema(
            integral_floats=self._draft is not Draft.DRAFT_4,
            minimum=keywords.number("minimum"),
            maximum=keywords.number("maximum"),
            multiple_of=multiple_of,
        )
        if self._draft is Draft.DRAFT_4:
            return replace(
                schema,
                excludes_minimum=keywords.boolean("exclusiveMinimum"),
                excludes_maximum=keywords.boolean("exclusiveMaximum"),
            )
        return replace(
            schema,
            exclusive_minimum=keywords.number("exclusiveMinimum"),
            exclusive_maximum=keywords.number("exclusiveMaximum"),
        )

    def _array(self) -> ArraySchema:
        keywords = self._keywords
        contains = self._maybe("contains") if self._draft is not Draft.DRAFT_4 else None
        schema = ArraySchema(
            min_items=keywords.integer("minItems"),
            max_items=keywords.integer("maxItems"),
            unique=keywords.boolean("uniqueItems"),
            contains=contains,
            unevaluated=self._maybe("unevaluatedItems") if self._draft.modern else None,
        )
        if contains is not None and self._draft.modern:
            least = keywords.integer("minContains")
            schema = replace(
                schema, min_contains=1 if least is None else least, max_contains=keywords.integer("maxContains")
            )
        return self._with_items(schema)

    def _with_items(self, schema: ArraySchema) -> ArraySchema:
        members = self._keywords.members
        if self._draft is Draft.DRAFT_2020_12:
            schema = replace(schema, evaluates_all="items" in members)
            first = self._children("prefixItems")
            allowed, rest = self._boolean_or_schema("items")
            if first:
                return replace(schema, items=first, allows_additional=allowed, additional=rest)
            return replace(schema, all_items=rest, allows_additional=allowed)
        allowed, rest = self._boolean_or_schema("additionalItems")
        if isinstance(members.get("items"), list):
            schema = replace(schema, evaluates_all="additionalItems" in members)
            return replace(schema, items=self._children("items"), allows_additional=allowed, additional=rest)
        if self._draft is Draft.DRAFT_2019_09:
            allowed, rest = self._boolean_or_schema("items")
            return replace(schema, all_items=rest, allows_additional=allowed, evaluates_all="items" in members)
        items = self._maybe("items")
        allowed = allowed or items is not None
        return replace(schema, all_items=items, allows_additional=allowed, additional=rest, checks_additional=False)

    def _object(self) -> ObjectSchema:
        keywords = self._keywords
        for pattern in keywords.object("patternProperties"):
            self._check_pattern(pattern, "patternProperties")
        allowed, additional = self._boolean_or_schema("additionalProperties")
        return ObjectSchema(
            properties=self._named("properties"),
            required=frozenset(keywords.strings("required")),
            patterns=self._named("patternProperties"),
            allows_additional=allowed,
            additional=additional,
            evaluates_all="additionalProperties" in keywords.members,
            unevaluated=self._maybe("unevaluatedProperties") if self._draft.modern else None,
            min_properties=keywords.integer("minProperties"),
            max_properties=keywords.integer("maxProperties"),
            property_names=self._maybe("propertyNames") if self._draft is not Draft.DRAFT_4 else None,
            dependent_required=self._dependent_required(),
            dependent_schemas=self._dependent_schemas(),
        )

    def _dependent_required(self) -> dict[str, frozenset[str]]:
        name = "dependentRequired" if self._draft.modern else "dependencies"
        lists = self._keywords.lists_of_strings(name, only_lists=self._draft.modern)
        return {key: frozenset(names) for key, names in lists.items() if names}

    def _dependent_schemas(self) -> dict[str, Link]:
        if self._draft.modern:
            return self._named("dependentSchemas")
        dependencies = self._keywords.object("dependencies").items()
        return {
            key: self._links.contained(value, f"dependencies/{key}")
            for key, value in dependencies
            if not isinstance(value, list)
        }

    # Subschemas.

    def _boolean_or_schema(self, name: str) -> tuple[bool, Link | None]:
        """Whether more is allowed, and its schema unless that is a boolean."""
        value = self._keywords.members.get(name, True)
        return value is not False, None if isinstance(value, bool) else self._child(name)

    def _child(self, name: str) -> Link:
        return self._links.contained(self._keywords.members[name], name)

    def _maybe(self, name: str) -> Link | None:
        return self._child(name) if name in self._keywords.members else None

    def _children(self, name: str) -> tuple[Link, ...]:
        return tuple([self._links.contained(item, f"{name}/{i}") for i, item in enumerate(self._keywords.array(name))])

    def _named(self, name: str) -> dict[str, Link]:
        members = self._keywords.object(name).items()
        return {key: self._links.contained(value, f"{name}/{key}") for key, value in members}

    def _check_pattern(self, pattern: str, name: str) -> None:
        if problem := problem_with(pattern):
            raise InvalidSchema(f"{self._keywords.path}/{name}: {problem}")
