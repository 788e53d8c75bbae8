"""What the rules call compatible, an independent validator confirms: values of the writer's schema fit the reader's.

The judge is the jsonschema library. Confluent's rules are not sound everywhere; where they are not, they are followed,
and the exceptions are written down here.
"""

import json
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from kaspar.schemas.json_schema import JsonSchema, incompatibilities, parse
from kaspar.schemas.json_schema.validation import InvalidValue, check_value
from tests.property.json_schemas import SCHEMAS, VALUES, changed


def _refusals(writer: Any, reader: Any) -> list[str]:
    return list(incompatibilities(parse(json.dumps(reader), {}), parse(json.dumps(writer), {})))


def _fits(schema: Any, value: Any) -> bool:
    return Draft7Validator(schema).is_valid(value)


@settings(max_examples=150, deadline=None, database=None)
@given(st.data())
def test_compatible_schema_accepts_what_the_old_one_accepted(data: st.DataObject) -> None:
    _check_acceptance(data)


@pytest.mark.long
@pytest.mark.timeout(600)
@settings(max_examples=5000, deadline=None, database=None)
@given(st.data())
def test_compatible_schema_accepts_what_the_old_one_accepted_in_many_examples(data: st.DataObject) -> None:
    _check_acceptance(data)


def _check_acceptance(data: st.DataObject) -> None:
    writer = data.draw(SCHEMAS, "writer")
    reader = data.draw(changed(writer), "reader")
    compatible = not _refusals(writer, reader)
    event(f"compatible: {compatible}")
    if compatible:
        values = [value for value in data.draw(st.lists(VALUES, min_size=5, max_size=10)) if _fits(writer, value)]
        event(f"values: {bool(values)}")
        assert [value for value in values if not _fits(reader, value)] == []


@settings(max_examples=100, deadline=None, database=None)
@given(SCHEMAS)
def test_schema_is_compatible_with_itself(schema: Any) -> None:
    assert _refusals(schema, schema) == []


EXCEPTIONS = [
    (
        "a required property with a default, which Confluent's deserializers fill in",
        {"type": "object", "properties": {"a": {"type": "string", "default": ""}}},
        {"type": "object", "properties": {"a": {"type": "string", "default": ""}}, "required": ["a"]},
        {},
    ),
    ("a required property without a schema", {"type": "object"}, {"type": "object", "required": ["a"]}, {}),
    (
        "a required property that may be anything",
        {"type": "object"},
        {"type": "object", "properties": {"a": True}, "required": ["a"]},
        {},
    ),
    ("a type beside its keywords", {"minLength": 1}, {"type": "string", "minLength": 1}, 5),
    (
        "schemas of oneOf that overlap",
        {"oneOf": [{"type": "integer"}]},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        1,
    ),
    (
        "a schema of patternProperties",
        {"type": "object", "patternProperties": {"a": {"type": "string"}}},
        {"type": "object", "patternProperties": {"a": {"type": "null"}}},
        {"a": ""},
    ),
    (
        "propertyNames",
        {"type": "object", "propertyNames": True},
        {"type": "object", "propertyNames": {"maxLength": 1}},
        {"aa": 1},
    ),
    (
        "additionalItems without a list of items, which means nothing",
        {"type": "array", "additionalItems": False},
        {"type": "array", "items": [{"type": "null"}], "additionalItems": False},
        [1],
    ),
    ("contains", {"type": "array"}, {"type": "array", "contains": {"type": "null"}}, []),
    ("then", {"if": True, "then": True}, {"if": True, "then": False}, None),
]


@pytest.mark.parametrize(
    ("writer", "reader", "value"), [case[1:] for case in EXCEPTIONS], ids=[c[0] for c in EXCEPTIONS]
)
def test_confluents_rules_overlook(writer: Any, reader: Any, value: Any) -> None:
    assert _refusals(writer, reader) == []
    assert _fits(writer, value)
    assert not _fits(reader, value)


# The other way round: within a small domain a refusal has a reason, a value that the reader does not accept.

_LIMIT = st.integers(1, 3)
_INTEGERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])}, optional={"minimum": _LIMIT, "maximum": st.integers(4, 5)}
)
_STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")}, optional={"minLength": _LIMIT, "maxLength": st.integers(3, 5)}
)
_ARRAYS = st.fixed_dictionaries(
    {"type": st.just("array")}, optional={"minItems": _LIMIT, "maxItems": st.integers(3, 5)}
)
_ENUMS = st.builds(lambda values: {"enum": sorted(values)}, st.sets(st.integers(0, 4), min_size=1))
_SMALL = st.one_of(_INTEGERS, _STRINGS, _ARRAYS, _ENUMS, st.just({"type": "null"}))
_CLOSED = st.builds(
    lambda properties: {"type": "object", "properties": properties, "additionalProperties": False},
    st.dictionaries(st.sampled_from(["a", "b"]), _SMALL, max_size=2),
)
_DOMAIN: list[Any] = [
    None,
    *[x / 2 if x % 2 else x // 2 for x in range(13)],
    *["x" * length for length in range(7)],
    *[[None] * length for length in range(7)],
]
_MEMBERS = [{}, *[{name: value} for name in "ab" for value in _DOMAIN]]


def _accepts(schema: JsonSchema, value: Any) -> bool:
    try:
        check_value(schema, value)
    except InvalidValue:
        return False
    return True


@settings(max_examples=150, deadline=None, database=None)
@given(st.one_of(st.tuples(_SMALL, _SMALL), st.tuples(_CLOSED, _CLOSED)))
def test_refused_schema_rejects_something_that_the_old_one_accepted(schemas: tuple[Any, Any]) -> None:
    writer, reader = schemas
    refusals = _refusals(writer, reader)
    # An enum has no type to Confluent's rules, so they refuse to replace it by one.
    if not refusals or _mixes_enum_and_type(writer, reader):
        return
    old, new = (parse(json.dumps(schema), {}) for schema in schemas)
    reasons = (value for value in (*_DOMAIN, *_MEMBERS) if _accepts(old, value) and not _accepts(new, value))
    reason = next(reasons, _MEMBERS)
    assert reason is not _MEMBERS, refusals
    assert _fits(writer, reason)
    assert not _fits(reader, reason)


def _mixes_enum_and_type(writer: Any, reader: Any) -> bool:
    if "properties" in writer and "properties" in reader:
        common = writer["properties"].keys() & reader["properties"].keys()
        return any(_mixes_enum_and_type(writer["properties"][name], reader["properties"][name]) for name in common)
    return ("enum" in writer) != ("enum" in reader)
