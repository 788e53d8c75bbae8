"""JSON as Avro's Java library reads and writes it (Jackson), since the text of a schema determines its id.

Reading is bounded: text of any length, depth and content gives a value or InvalidSchema. Comments are accepted, and the
last of two equal keys wins. Writing is compact; numbers and control characters have Java's form.
"""

import json
import math
import re
import struct
from decimal import Decimal
from typing import Final, TypeAlias, cast

from kaspar.schemas.jackson import (
    MAX_DEPTH,
    check_digits,
    check_length,
    quoted,
    read_integer,
    refuse_constant,
    too_deep,
)
from kaspar.schemas.schema import InvalidSchema

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# The last alternative only matches unterminated strings and comments. Without it a search would continue in the middle
# of one.
_TOKEN: Final = re.compile(
    r"""(?P<string> "[^"\\]*+(?:\\.[^"\\]*+)*+" )
      | (?P<comment> //[^\n]*+ | /\*.*?\*/ )
      | (?P<open> [\[{] )
      | (?P<close> [\]}] )
      | (?P<unterminated> " | /\* )""",
    re.VERBOSE | re.DOTALL,
)


class Float32(float):
    """A single-precision number, which Java writes with fewer digits."""

    def __new__(cls, value: float) -> "Float32":
        try:
            return super().__new__(cls, struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return super().__new__(cls, math.copysign(math.inf, value))


def read_json(text: str) -> Json:
    check_length(text)
    without_comments = _scan(text)
    start = len(without_comments) - len(without_comments.lstrip(" \t\r\n"))
    if start == len(without_comments):
        raise InvalidSchema("The schema is empty")
    try:
        value, end = _DECODER.raw_decode(without_comments, start)
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"The schema is not JSON: {error}") from None
    if dangling := text[end:].strip():
        raise InvalidSchema(f"dangling content after end of schema: {dangling[:100]}")
    return cast(Json, value)


def to_json(value: Json) -> str:
    """Compact JSON. `value` is no deeper than what `read_json` returns."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case int():
            return str(value)
        case float():
            return _java_number(value)
        case list():
            return f"[{','.join(map(to_json, value))}]"
        case dict():
            return "{" + ",".join(f"{quoted(key)}:{to_json(member)}" for key, member in value.items()) + "}"


def check_depth(text: str) -> None:
    """Raise InvalidSchema if the JSON is nested deeper than `read_json` accepts."""
    _scan(text)


def _scan(text: str) -> str:
    """The text with its comments replaced by blanks, so that positions stay the same."""
    depth = 0
    parts: list[str] = []
    position = 0
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "open":
                depth += 1
                if depth > MAX_DEPTH:
                    raise too_deep()
            case "close":
                depth -= 1
            case "comment":
                parts += (text[position : token.start()], " " * len(token[0]))
                position = token.end()
            case "unterminated":
                raise InvalidSchema(
                    f"The schema is not JSON: {token[0]} at character {token.start()} is not terminated"
                )
    return "".join((*parts, text[position:]))


def _float(digits: str) -> float:
    check_digits(digits)
    return float(digits)


_DECODER: Final = json.JSONDecoder(parse_int=read_integer, parse_float=_float, parse_constant=refuse_constant)


def _java_number(value: float) -> str:
    """Java's Double.toString (and Float.toString): scientific from 10^7 and below 10^-3. NaN and Infinity are text."""
    if math.isnan(value):
        return '"NaN"'
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f'"{sign}Infinity"'
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest_digits(value)
    if -3 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if 0 <= exponent < 7:
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_digits(value: float) -> tuple[str, int]:
    """The fewest digits that denote the number, and the power of ten of the first one."""
    if isinstance(value, Float32):
        texts = (f"{value:.{precision}g}" for precision in range(1, 10))
        text = next(text for text in texts if Float32(float(text)) == value)
    else:
        text = repr(value)
    _, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    return "".join(map(str, digits)), exponent + len(digits) - 1
