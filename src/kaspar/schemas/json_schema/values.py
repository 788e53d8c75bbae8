"""Equality of JSON values: 1 equals 1.0, true does not equal 1, and the order of an object's members is ignored."""

import math
from collections.abc import Hashable, Mapping
from decimal import Decimal


def identity(value: object) -> Hashable:
    """A key that is equal for equal JSON values only. Values are those of `json`; numbers may be decimals."""
    match value:
        case None | str():
            return value
        case bool():
            return ("boolean", value)
        case int() | float() | Decimal():
            return number(value)
        case Mapping():
            return ("object", frozenset((name, identity(member)) for name, member in value.items()))
        case list() | tuple():
            return ("array", tuple([identity(member) for member in value]))
        case _:
            raise TypeError(f"{type(value).__name__} is not a value of JSON")


def number(value: int | float | Decimal) -> int | float | Decimal:
    """A number whose Python equality is that of the values, whatever the types. A float stands for the decimal that it
    is written as."""
    return Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value
