"""JSON of records, as RFC 8259 has it: what Python's module reads and writes beyond that is refused, or written so that
every other reader understands it."""

import json
import math
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Raises ValueError also for NaN and Infinity, for numbers that no double can hold, and for what is nested so
    deeply that it cannot be read."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_json(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def utf8(text: str) -> bytes:
    """Half of a surrogate pair, which JSON can write as an escape and UTF-8 cannot, stays that escape."""
    return text.encode(errors="backslashreplace")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number
