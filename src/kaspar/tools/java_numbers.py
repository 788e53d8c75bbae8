"""Numbers as Java reads and prints them."""

import math
import re
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def parse_int(text: str) -> int:
    """As Integer.parseInt does: unlike int(), it takes neither spaces nor underscores, nor more than 32 bits. Raises
    ValueError."""
    return _parse(text, 32)


def parse_long(text: str) -> int:
    """As Long.parseLong does: the same with 64 bits."""
    return _parse(text, 64)


def _parse(text: str, bits: int) -> int:
    if _WHOLE.fullmatch(text) and -(1 << bits - 1) <= (value := int(text)) < 1 << bits - 1:
        return value
    raise ValueError(f"not a whole number of {bits} bits: {text}")


def format_double(value: float) -> str:
    """As Double.toString does: with an exponent from 10^7 on and below 10^-3."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    precision = next(digits for digits in range(17) if float(f"{value:.{digits}e}") == value)
    mantissa, exponent = f"{value:.{max(precision, 1)}e}".split("e")
    return f"{mantissa}E{int(exponent)}"
