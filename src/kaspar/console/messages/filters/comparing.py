"""Comparisons of the values of records. Records may have any shape, so no comparison fails: values that cannot be
compared are not equal, and neither less nor greater.

A number and a text compare as numbers if the text is one, since keys and CSV-like values are texts. Likewise, true and
false compare with the texts `true` and `false`.
"""

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kaspar.console.messages.filters.tree import Comparison, Value

_MAX_NUMBER_TEXT: Final = 40
"""The maximum length of a text that is read as a number."""

_STRUCTURES: Final = (dict, list, tuple)

_ORDERS: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    Comparison.LESS: operator.lt,
    Comparison.AT_MOST: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.AT_LEAST: operator.ge,
}


class Many(tuple[Value, ...]):
    """The values of a path with a wildcard. A comparison holds if it holds for one of them."""

    __slots__ = ()


def compare(comparison: Comparison, left: Value, right: Value) -> bool:
    """Whether the comparison holds. Neither side is `Many`."""
    match comparison:
        case Comparison.EQUAL:
            return equal(left, right)
        case Comparison.NOT_EQUAL:
            return not equal(left, right)
        case Comparison.IN:
            return _contains(right, left)
        case Comparison.CONTAINS:
            return _contains(left, right)
        case Comparison.STARTS_WITH:
            return left is not None and right is not None and text_of(left).startswith(text_of(right))
        case Comparison.ENDS_WITH:
            return left is not None and right is not None and text_of(left).endswith(text_of(right))
    return _ordered(_ORDERS[comparison], left, right)


def goes_over(comparison: Comparison, left: Value, right: Value) -> Iterable[Value]:
    """The values that `compare` has to read completely, with everything inside them."""
    whole, part = (right, left) if comparison is Comparison.IN else (left, right)
    match comparison:
        case Comparison.IN | Comparison.CONTAINS:
            return () if isinstance(whole, dict) else (whole, part)
        case Comparison.STARTS_WITH | Comparison.ENDS_WITH:
            return whole, part
    if isinstance(whole, _STRUCTURES) is isinstance(part, _STRUCTURES):
        return whole, part
    return ()  # a structure and a plain value are never equal


def equal(left: Value, right: Value) -> bool:
    left, right = _alike(left, right)
    if isinstance(left, bool) is not isinstance(right, bool):
        return False  # in Python, True equals 1
    return bool(left == right)


def _ordered(order: Callable[[Any, Any], bool], left: Value, right: Value) -> bool:
    left, right = _alike(left, right)
    both_numbers = is_number(left) and is_number(right)
    return (both_numbers or (isinstance(left, str) and isinstance(right, str))) and order(left, right)


def _contains(whole: Value, part: Value) -> bool:
    if isinstance(whole, dict):
        return isinstance(part, str) and part in whole
    if isinstance(whole, list | tuple):
        return any(equal(each, part) for each in whole)
    return whole is not None and part is not None and text_of(part) in text_of(whole)


def _alike(left: Value, right: Value) -> tuple[Value, Value]:
    """The values; if one is a number or a boolean and the other a text that represents one, the text is converted."""
    if isinstance(left, str) and not isinstance(right, str):
        return _read_as(right, left), right
    if isinstance(right, str) and not isinstance(left, str):
        return left, _read_as(left, right)
    return left, right


def _read_as(kind: Value, text: str) -> Value:
    if isinstance(kind, bool):
        return {"true": True, "false": False}.get(text, text)
    if is_number(kind):
        number = number_of(text)
        return text if number is None else number
    return text


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Value) -> int | float | None:
    """The value of a number, or of a text that represents one; None for anything else."""
    if is_number(value):
        return value  # type: ignore[no-any-return]
    if not isinstance(value, str) or len(value) > _MAX_NUMBER_TEXT or "_" in value:
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return None


def text_of(value: Value) -> str:
    """The value as text: as in JSON, but without quotes around a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _STRUCTURES):
        return json_text(value)
    return str(value)


def json_text(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def is_true(value: Value) -> bool:
    """Whether a value holds as a condition: all do except null, false, 0 and empty values. Of `Many`, one is enough."""
    return any(map(bool, value)) if isinstance(value, Many) else bool(value)


def size_of(value: Value) -> int | None:
    return len(value) if isinstance(value, str | dict | Sequence) else None
