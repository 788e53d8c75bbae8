"""When two JSON values are the same: 1 and 1.0 are, true and 1 are not, and the order of an object's members does not
matter."""

import math
from collections.abc import Hashable, Mapping
from decimal import Decimal


def identity(value: object) -> Hashable:
    """Equal for equal JSON values, and only for those. Values are those of `json`, numbers may be decimals."""
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
    """Numbers of one value are equal in Python, whatever their types; but a float stands for the decimal that it is
    written as."""
    return Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value
