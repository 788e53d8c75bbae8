"""Values are accepted and refused as the jsonschema library does it, in the drafts with the most keywords."""

import json
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from kaspar.schemas.json_schema import parse
from kaspar.schemas.json_schema.drafts import Draft
from kaspar.schemas.json_schema.validation import InvalidValue, check_value
from tests.property.json_schemas import DRAFT_7_SCHEMAS, DRAFT_2020_12_SCHEMAS, VALUES


def _accepts(schema: Any, value: Any) -> bool:
    try:
        check_value(parse(json.dumps(schema), {}), value)
    except InvalidValue:
        return False
    return True


@settings(max_examples=400, deadline=None, database=None)
@given(DRAFT_7_SCHEMAS, st.lists(VALUES, min_size=3, max_size=6))
def test_values_of_draft_7(schema: Any, values: list[Any]) -> None:
    for value in values:
        expected = Draft7Validator(schema).is_valid(value)
        event(f"valid: {expected}")
        assert _accepts(schema, value) == expected, value


@settings(max_examples=400, deadline=None, database=None)
@given(DRAFT_2020_12_SCHEMAS, st.lists(VALUES, min_size=3, max_size=6))
def test_values_of_draft_2020_12(schema: Any, values: list[Any]) -> None:
    if isinstance(schema, dict):
        schema = {"$schema": Draft.DRAFT_2020_12.meta_schema, **schema}
    for value in values:
        expected = Draft202012Validator(schema).is_valid(value)
        event(f"valid: {expected}")
        assert _accepts(schema, value) == expected, value
