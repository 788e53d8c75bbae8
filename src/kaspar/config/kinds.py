"""The kinds of value a setting can have: how its text is read, how it is written back, and its code in DescribeConfigs.

The rules are those of Kafka's own parser, because people move their files and scripts over unchanged: text is trimmed,
`true` is read in any case, a list is split at commas. The sentence of a wrong value is Kafka's too, as tools show it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class ConfigType(IntEnum):
    """The type codes of a DescribeConfigs response."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of value. `parse` raises ValueError with the problem in words; the caller adds the setting's name."""

    code: ConfigType
    parse: Callable[[str], T]
    format: Callable[[T], str]

    def __str__(self) -> str:
        return self.code.name.lower()


_MAX_NUMBER_TEXT = 64  # int() of a very long text is slow
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _whole_number(code: ConfigType, bits: int) -> Kind[int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        text = text.strip()
        if len(text) <= _MAX_NUMBER_TEXT and _WHOLE_NUMBER.fullmatch(text) and -limit <= int(text) < limit:
            return int(text)
        raise ValueError(f"Not a number of type {code.name}")

    return Kind(code, parse, str)


def _parse_boolean(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("Expected value to be either true or false")


def _format_boolean(value: bool) -> str:
    return "true" if value else "false"


def _parse_double(text: str) -> float:
    text = text.strip()
    if len(text) <= _MAX_NUMBER_TEXT and _DECIMAL_NUMBER.fullmatch(text):
        return float(text)
    raise ValueError("Not a number of type DOUBLE")


def format_double(value: float) -> str:
    """Format a number as Java does: 0.5, 1.0E10, 1.7976931348623157E308."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits, _, exponent = _scientific(value).partition("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _scientific(value: float) -> str:
    """The shortest scientific form that parses to the same number."""
    return next(text for places in range(18) if float(text := f"{value:.{places}e}") == value)


def _parse_list(text: str) -> tuple[str, ...]:
    text = text.strip()
    return tuple(part.strip() for part in text.split(",")) if text else ()


BOOLEAN: Kind[bool] = Kind(ConfigType.BOOLEAN, _parse_boolean, _format_boolean)
STRING: Kind[str] = Kind(ConfigType.STRING, str.strip, str)
SHORT = _whole_number(ConfigType.SHORT, 16)
INT = _whole_number(ConfigType.INT, 32)
LONG = _whole_number(ConfigType.LONG, 64)
DOUBLE: Kind[float] = Kind(ConfigType.DOUBLE, _parse_double, format_double)
LIST: Kind[tuple[str, ...]] = Kind(ConfigType.LIST, _parse_list, ",".join)
DISTINCT_LIST: Kind[tuple[str, ...]] = Kind(
    ConfigType.LIST, lambda text: tuple(dict.fromkeys(_parse_list(text))), ",".join
)
"""A list without repeated values, as Kafka parses them (KIP-1161)."""
CLASS: Kind[str] = Kind(ConfigType.CLASS, str.strip, str)
PASSWORD: Kind[str] = Kind(ConfigType.PASSWORD, str, str)

MAX_INT = (1 << 31) - 1
MAX_LONG = (1 << 63) - 1
MAX_DOUBLE = 1.7976931348623157e308
