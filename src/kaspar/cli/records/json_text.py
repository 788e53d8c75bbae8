"""JSON in records, strictly according to RFC 8259. Extensions of Python's json module are refused when reading, or
written in a form that every reader understands."""

import json
import math
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError, also for NaN and Infinity, for numbers that overflow a double, and for values that
    are nested too deeply."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_json(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def utf8(text: str) -> bytes:
    """Encode text as UTF-8. An unpaired surrogate, which JSON can escape but UTF-8 cannot encode, is written as an
    escape.
    """
    return text.encode(errors="backslashreplace")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number
