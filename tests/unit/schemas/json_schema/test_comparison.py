"""Comparing whole schemas: messages, recursion, and bounds."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.schemas.json_schema import incompatibilities, parse
from kaspar.schemas.json_schema.compatibility import TOO_COMPLEX
from kaspar.schemas.json_schema.compatibility.comparison import MAX_DIFFERENCES
from kaspar.schemas.json_schema.compatibility.matching import maximum_matching
from kaspar.schemas.levels import CompatibilityLevel, EarlierVersion, check


def _refusals(reader: Any, writer: Any) -> list[str]:
    return list(incompatibilities(parse(json.dumps(reader), {}), parse(json.dumps(writer), {})))


def _kinds(messages: list[str]) -> list[str]:
    return [message.split('"')[1] for message in messages]


@pytest.mark.parametrize(
    ("writer", "reader", "message"),
    [
        (
            {"type": "string"},
            {"type": "integer"},
            '{errorType:"TYPE_CHANGED", description:"A type at path \'#/\' is different between the %s schema and the'
            ' %s schema"}',
        ),
        (
            {"type": "string"},
            {"type": "string", "maxLength": 1},
            '{errorType:"MAX_LENGTH_ADDED", description:"The keyword at path \'#/maxLength\' in the %s schema is not'
            ' present in the %s schema"}',
        ),
        (
            {"properties": {}},
            {"properties": {"100%": {"type": "string"}}},
            '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The %s schema has an open content'
            " model and has a property or item at path '#/properties/100%%' which is missing in the %s schema\"}",
        ),
        ({"type": "array"}, {"type": "array", "items": {}}, '{errorType:"SCHEMA_ADDED", description:""}'),
    ],
)
def test_messages_are_confluents(writer: Any, reader: Any, message: str) -> None:
    assert _refusals(reader, writer) == [message]


def test_registry_names_the_sides() -> None:
    old = parse('{"type":"object","additionalProperties":false,"properties":{"50%":{}}}', {})
    new = parse('{"type":"object","additionalProperties":false}', {})
    messages = check(CompatibilityLevel.BACKWARD, new, [EarlierVersion(3, old)])
    assert messages[0] == (
        '{errorType:"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", description:"The new schema has a closed content'
        " model and is missing a property or item present at path '#/properties/50%' in the old schema\"}"
    )


def _linked(*types: str, refs: list[str]) -> dict[str, Any]:
    """T0, T1, ... with an `id` of a type each, and a `ref` to another."""
    definitions = {
        f"T{i}": {
            "type": "object",
            "properties": {"id": {"type": name}, "ref": {"oneOf": [{"$ref": f"#/definitions/{ref}"}]}},
        }
        for i, (name, ref) in enumerate(zip(types, refs, strict=True))
    }
    root = {"oneOf": [{"$ref": "#/definitions/T0"}, {"$ref": "#/definitions/T1"}]}
    return {"type": "object", "definitions": definitions, "properties": {"root": root}}


def test_change_within_a_recursive_schema_is_found() -> None:
    before = _linked("string", "null", "integer", refs=["T2", "T2", "T0"])
    assert _refusals(before, before) == []
    assert _kinds(_refusals(_linked("string", "null", "string", refs=["T2", "T2", "T0"]), before)) != []


def test_assumption_about_a_recursive_pair_does_not_hide_an_incompatibility() -> None:
    # One pass finds (T0, T0) compatible under the assumption that (T0, T2) is, which turns out to be wrong.
    before = _linked("integer", "boolean", "integer", refs=["T2", "T2", "T0"])
    after = _linked("boolean", "number", "integer", refs=["T2", "T2", "T0"])
    assert _refusals(after, before) != []


def _products(branches: int, properties: int, draft: str) -> dict[str, Any]:
    """A oneOf whose schemas all refer back to it, several times each."""
    refs = {f"ref{i}": {"$ref": "#/$defs/ProductOrId"} for i in range(properties)}
    types = {
        f"Type{i}": {
            "$ref": "#/$defs/Base",
            "type": "object",
            "properties": {**refs, "tag": {"type": "string", "const": f"type{i}"}},
            "required": ["ref0", "tag"],
        }
        for i in range(branches)
    }
    products = [{"$ref": f"#/$defs/{name}"} for name in types]
    return {
        "$schema": draft,
        "$ref": "#/$defs/Product",
        "$defs": {
            "Base": {"type": "object", "properties": {"name": {"type": "string"}}},
            "Id": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "ProductOrId": {"oneOf": [{"$ref": "#/$defs/Id"}, {"$ref": "#/$defs/Product"}]},
            "Product": {"oneOf": products},
            **types,
        },
    }


def test_recursion_through_many_combinations_ends() -> None:
    schema = _products(12, 5, "https://json-schema.org/draft/2020-12/schema")
    assert _refusals(schema, schema) == []
    changed = json.loads(json.dumps(schema).replace('"const": "type7"', '"const": "type70"'))
    assert _kinds(_refusals(changed, schema)) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]


def _doubling(levels: int, leaf: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{i}": {"type": "object", "properties": {name: {"$ref": f"#/definitions/d{i + 1}"} for name in "ab"}}
        for i in range(levels)
    }
    return {"$ref": "#/definitions/d0", "definitions": {**definitions, f"d{levels}": {"type": leaf}}}


def test_differences_that_double_with_every_level_are_cut() -> None:
    messages = _refusals(_doubling(60, "string"), _doubling(60, "null"))
    assert _kinds(messages) == ["TYPE_CHANGED"] * MAX_DIFFERENCES


def test_comparison_that_is_too_deep_is_refused() -> None:
    assert _refusals(_doubling(150, "string"), _doubling(150, "string")) == [TOO_COMPLEX]


def test_nesting_that_parsing_allows_ends_without_a_recursion_error() -> None:
    schema: Any = {}
    for _ in range(190):
        schema = {"not": schema}
    assert _refusals(schema, schema) == [TOO_COMPLEX]


@settings(max_examples=100, deadline=None, database=None)
@given(st.lists(st.sets(st.integers(0, 4)), max_size=5))
def test_matching_is_as_large_as_possible(neighbors: list[set[int]]) -> None:
    matching = maximum_matching([sorted(rights) for rights in neighbors], 5)
    matched = [right for right in matching if right is not None]
    assert len(set(matched)) == len(matched)
    assert all(right in neighbors[left] for left, right in enumerate(matching) if right is not None)
    lefts = range(len(neighbors))
    assert len(matched) == max(
        sum(right in neighbors[left] for left, right in zip(lefts, order, strict=False))
        for order in itertools.permutations(range(5))
    )
