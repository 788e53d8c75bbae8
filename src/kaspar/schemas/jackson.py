"""JSON as Jackson reads and writes it, where Avro and JSON Schema agree: limits, and quoted strings.

All checks raise InvalidSchema.
"""

import re
from typing import Final, NoReturn

from kaspar.schemas.schema import InvalidSchema

MAX_CHARACTERS: Final = 2_000_000
MAX_DEPTH: Final = 200
# Jackson's limit in StreamReadConstraints.
MAX_DIGITS: Final = 1_000

_SPECIAL_CHARACTER: Final = re.compile(r'[\x00-\x1f"\\]')
_SHORT_ESCAPES: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def quoted(text: str) -> str:
    return f'"{_SPECIAL_CHARACTER.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}"


def check_length(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise InvalidSchema(f"The schema has {len(text)} characters, {MAX_CHARACTERS} are allowed")


def too_deep() -> InvalidSchema:
    return InvalidSchema(f"The schema is nested deeper than {MAX_DEPTH} levels")


def check_digits(number: str) -> None:
    if len(number) > MAX_DIGITS:
        raise InvalidSchema(f"The schema has a number of {len(number)} characters, {MAX_DIGITS} digits are allowed")


def read_integer(digits: str) -> int:
    check_digits(digits)
    return int(digits)


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's decoder accepts."""
    raise InvalidSchema(f"The schema is not JSON: {name} is not a value")
