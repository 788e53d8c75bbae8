"""Values are refused with the place of the problem, and whatever the schema and the value are, within bounds."""

import json
from decimal import Decimal
from typing import Any

import pytest

from kaspar.schemas.json_schema import parse
from kaspar.schemas.json_schema.patterns import matches
from kaspar.schemas.json_schema.validation import InvalidValue, check_value


def _problem(schema: Any, value: object) -> str | None:
    try:
        check_value(parse(json.dumps(schema), {}), value)
    except InvalidValue as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "object", "required": ["a", "b"]}, {"b": 1}, "#/: lacks the required property 'a'"),
        ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": ["x", 5]}, "#/a/1: is not a string"),
        ({"additionalProperties": False}, {"x": 1}, "#/x: is not allowed"),
        ({"type": ["string", "null"]}, 5, "#/: has none of the types"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, 5, "#/: fits 2 schemas of oneOf"),
        ({"enum": ["a"]}, "b", "#/: is not in the enum"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "#/ab: the name is longer than 1 characters"),
        ({"pattern": "^a"}, "b", "#/: does not match the pattern '^a'"),
        ({"type": "integer"}, True, "#/: is not an integer"),
        ({"type": "number"}, float("nan"), "#/: is not a number of JSON"),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], "#/: has equal items"),
        ({"dependencies": {"a": ["b"]}}, {"a": 1}, "#/: lacks the property 'b', which 'a' requires"),
    ],
)
def test_problem_is_reported_with_its_place(schema: Any, value: object, problem: str) -> None:
    assert _problem(schema, value) == problem


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"format": "date"}, "no date"),
        ({"multipleOf": 0.01}, 19.99),
        ({"multipleOf": 0.1}, Decimal("1E+30")),
        ({"type": "integer"}, 1.0),
        ({"enum": [0.1]}, 0.1),
        ({"const": 10}, Decimal("1E+1")),
        ({"maxLength": 1}, "\U0001f600"),
    ],
)
def test_value_fits(schema: Any, value: object) -> None:
    assert _problem(schema, value) is None


def test_pattern_that_explodes_in_other_engines_takes_no_time() -> None:
    assert _problem({"pattern": "^(a+)+$"}, "a" * 50_000 + "!") is not None
    assert _problem({"patternProperties": {"^(a|a)*$": False}}, {"a" * 50_000 + "!": 1}) is None


def test_pattern_that_cannot_be_matched_is_not_ignored() -> None:
    assert "cannot be matched" in (_problem({"pattern": r"(?i)(?=a)"}, "b") or "")


def test_pattern_with_lookaround_that_explodes_is_given_up() -> None:
    assert "too many steps" in (_problem({"pattern": "^(?=a)(a+)+$"}, "a" * 200 + "!") or "")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^\u00e9\u{1F600}$", "é\U0001f600", True),
        (r"\\u0061", "a", False),
        (r"^.{1,4000}$", "x" * 4000, True),
        (r"^.{1,4000}$", "x" * 4001, False),
        (r"^[ab]{1500,}$", "ab" * 750, True),
        (r"^[ab]{1500,}$", "a" * 1499, False),
        (r"^\d{1001}$", "1" * 1001, True),
        (r"^\p{L}+\/$", "ä/", True),
        ("b", "abc", True),
        (r"^(?!\s*$).+", "  x", True),
        (r"^(?!\s*$).+", "   ", False),
        (r"^(?=.*[A-Z])(?=.*\d).{4,}$", "abC4", True),
        (r"^(?=.*[A-Z])(?=.*\d).{4,}$", "abc4", False),
        (r"^(['\"]).*\1$", "'x'", True),
        (r"^(?<q>['\"]).*?\k<q>$", "'x\"", False),
        (r"(?<=\$)\d+(?!\d|%)", "a $15", True),
        (r"(?<!\$)\b\d+\b", "a $15", False),
        (r"^(?:(?=ab)ab|cd){2,3}$", "abcdab", True),
        (r"^(?=\u00e9)\p{L}{1,2000}$", "é" * 2000, True),
    ],
)
def test_patterns_of_ecmascript(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


def test_schema_that_doubles_the_work_with_every_level_is_given_up() -> None:
    definitions: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/definitions/d{i + 1}"}] * 2} for i in range(20)}
    schema = {"$ref": "#/definitions/d0", "definitions": {**definitions, "d20": False}}
    assert _problem(schema, 1) == "The value takes too many steps to check"


def test_schema_that_applies_itself_to_the_same_value_is_given_up() -> None:
    assert "nested too deeply" in (_problem({"allOf": [{"$ref": "#"}]}, 1) or "")


def test_deep_value_is_given_up() -> None:
    value: object = 1
    for _ in range(5_000):
        value = [value]
    assert "nested too deeply" in (_problem({"items": {"$ref": "#"}, "uniqueItems": True}, value) or "")
