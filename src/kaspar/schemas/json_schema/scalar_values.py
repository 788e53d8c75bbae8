"""Validates strings and numbers."""

import math
from decimal import Decimal

from kaspar.schemas.json_schema.nodes import NumberSchema, StringSchema
from kaspar.schemas.json_schema.numbers import is_multiple
from kaspar.schemas.json_schema.patterns import matches
from kaspar.schemas.json_schema.values import number


def string_problem(schema: StringSchema, value: object) -> str | None:
    if not isinstance(value, str):
        return "is not a string" if schema.required_type else None
    if schema.min_length is not None and len(value) < schema.min_length:
        return f"is shorter than {schema.min_length} characters"
    if schema.max_length is not None and len(value) > schema.max_length:
        return f"is longer than {schema.max_length} characters"
    if schema.pattern is not None and not matches(schema.pattern, value):
        return f"does not match the pattern {schema.pattern[:100]!r}"
    return None


def number_problem(schema: NumberSchema, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        kind = "an integer" if schema.integer else "a number"
        return f"is not {kind}" if schema.required_type else None
    if not math.isfinite(value):
        return "is not a number of JSON"
    exact = number(value)
    assert not isinstance(exact, float)
    if schema.integer and not _is_integer(exact, schema):
        return "is not an integer"
    if _is_below(schema, exact):
        return "is below the minimum"
    if _is_above(schema, exact):
        return "is above the maximum"
    if schema.multiple_of is not None and not is_multiple(exact, schema.multiple_of):
        return f"is not a multiple of {schema.multiple_of}"
    return None


def _is_integer(value: int | Decimal, schema: NumberSchema) -> bool:
    return isinstance(value, int) or (schema.integral_floats and value == value.to_integral_value())


def _is_below(schema: NumberSchema, value: int | Decimal) -> bool:
    if schema.minimum is not None and (value < schema.minimum or (schema.excludes_minimum and value == schema.minimum)):
        return True
    return schema.exclusive_minimum is not None and value <= schema.exclusive_minimum


def _is_above(schema: NumberSchema, value: int | Decimal) -> bool:
    if schema.maximum is not None and (value > schema.maximum or (schema.excludes_maximum and value == schema.maximum)):
        return True
    return schema.exclusive_maximum is not None and value >= schema.exclusive_maximum
