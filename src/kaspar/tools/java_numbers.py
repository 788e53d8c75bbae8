"""Numbers as Java reads and prints them."""

import math
import re
import struct
from decimal import Decimal
from typing import Final

_SINGLE: Final = struct.Struct(">f")
_FLOAT_DIGITS: Final = range(1, 10)
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def parse_int(text: str) -> int:
    """Parse like Integer.parseInt: unlike int(), rejects spaces, underscores, and more than 32 bits. Raises
    ValueError."""
    return _parse(text, 32)


def parse_long(text: str) -> int:
    """Parse like Long.parseLong: `parse_int` with 64 bits."""
    return _parse(text, 64)


def _parse(text: str, bits: int) -> int:
    if _WHOLE.fullmatch(text) and -(1 << bits - 1) <= (value := int(text)) < 1 << bits - 1:
        return value
    raise ValueError(f"not a whole number of {bits} bits: {text}")


def format_double(value: float) -> str:
    """Format like Double.toString: with an exponent from 10^7 and below 10^-3."""
    return _format(repr(value), value)


def format_float(value: float) -> str:
    """Format like Float.toString: the fewest digits that identify this 32-bit number."""
    texts = (f"{value:.{digits}g}" for digits in _FLOAT_DIGITS)
    shortest = next((text for text in texts if _SINGLE.pack(float(text)) == _SINGLE.pack(value)), repr(value))
    return _format(repr(float(shortest)), value)


def _format(text: str, value: float) -> str:
    """`text` is Python's representation, which has the same digits as Java's."""
    if not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, "NaN")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int), "it is finite"
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or '0'}E{exponent + len(others)}"
