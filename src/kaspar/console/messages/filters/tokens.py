"""Splits the text of a filter into tokens."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from kaspar.console.messages.filters.errors import FilterError

MAX_TEXT: Final = 2_000
"""The maximum number of characters of a filter."""

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f"}
_MAX_DIGITS: Final = 30

# Each alternative takes time linear in the length of its match.
_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<time>\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<name>[^\W\d]\w*)
  | (?P<symbol>==|!=|<=|>=|&&|\|\||[=<>!+\-*/%().,\[\]$])
    """,
    re.VERBOSE,
)


class Kind(Enum):
    NUMBER = "a number"
    TEXT = "a text"
    NAME = "a name"
    SYMBOL = "a symbol"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """The text as it is written; that of a quoted text has no quotes and escapes."""
    column: int
    number: int | float = 0


def tokens_of(text: str) -> list[Token]:
    """The tokens, and a last one for the end. Raises FilterError."""
    if len(text) > MAX_TEXT:
        raise FilterError(
            f"A filter can have at most {MAX_TEXT:,} characters; this one has {len(text):,}.", MAX_TEXT + 1
        )
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        if text[position] in "\"'":
            token, position = _quoted(text, position)
            yield token
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise FilterError(f"Unexpected character {text[position]!r}.", position + 1)
        column = position + 1
        position = match.end()
        match match.lastgroup:
            case "time":
                yield Token(Kind.NUMBER, match[0], column, _time_ms(match[0], column))
            case "number":
                number, position = _number(text, match, column)
                yield Token(Kind.NUMBER, text[column - 1 : position], column, number)
            case "name":
                yield Token(Kind.NAME, match[0], column)
            case "symbol":
                yield Token(
                    Kind.SYMBOL, {"=": "==", "&&": "and", "||": "or", "!": "not"}.get(match[0], match[0]), column
                )
    yield Token(Kind.END, "", len(text) + 1)


def _quoted(text: str, start: int) -> tuple[Token, int]:
    """The token of a quoted text, and the position after it."""
    quote, position = text[start], start + 1
    parts: list[str] = []
    while position < len(text):
        character = text[position]
        if character == quote:
            return Token(Kind.TEXT, "".join(parts), start + 1), position + 1
        if character == "\\":
            character, position = _escaped(text, position)
        parts.append(character)
        position += 1
    raise FilterError(f"The string that starts here has no closing {quote}.", start + 1)


def _escaped(text: str, position: int) -> tuple[str, int]:
    """The character of the escape sequence at `position`, and the position of its last character."""
    following = text[position + 1 : position + 2]
    if following == "u":
        digits = text[position + 2 : position + 6]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise FilterError("\\u needs four hexadecimal digits.", position + 1)
        return chr(int(digits, 16)), position + 5
    if following not in _ESCAPES:
        raise FilterError(f"\\{following} is not an escape sequence; a literal backslash is \\\\.", position + 1)
    return _ESCAPES[following], position + 1


def _number(text: str, match: re.Match[str], column: int) -> tuple[int | float, int]:
    """A number or, if a unit follows, a duration in milliseconds; and the position after it."""
    digits, end = match[0], match.end()
    if len(digits) > _MAX_DIGITS:
        raise FilterError(f"A number can have at most {_MAX_DIGITS} digits.", column)
    number = float(digits) if any(mark in digits for mark in ".eE") else int(digits)
    unit = re.compile(r"\w*").match(text, end)
    assert unit is not None
    if not unit[0]:
        return number, end
    if unit[0] not in _UNITS_MS:
        raise FilterError(f"{digits}{unit[0]} is not a number; durations end with ms, s, m, h or d.", column)
    return number * _UNITS_MS[unit[0]], unit.end()


def _time_ms(text: str, column: int) -> int:
    """Milliseconds since 1970. A time without a zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(text)
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return int(parsed.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise FilterError(f"{text} is not a valid date or time.", column) from None
