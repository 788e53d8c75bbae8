"""JSON as Confluent's registry reads and writes it (Jackson, with exact decimals), since the text of a schema
determines its id.

Reading is bounded: a text of any length, depth and content gives a value or InvalidSchema. Two equal keys in one
object, NaN and lone surrogates are refused, because other readers could understand the same text differently.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

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

Json: TypeAlias = "bool | int | Decimal | str | list[Json] | dict[str, Json] | None"

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def read_json(text: str) -> Json:
    check_length(text)
    try:
        value: Json = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"The schema is not JSON: {error}") from None
    except RecursionError:
        raise too_deep() from None
    _check(value)
    return value


def write_json(value: Json, *, sort_keys: bool = False) -> str:
    """Compact JSON with the keys in their order, or sorted as Java's strings. `value` is not deeper than what
    `read_json` returns."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case int():
            return str(value)
        case Decimal():
            return _java_decimal(value)
        case list():
            return f"[{','.join([write_json(member, sort_keys=sort_keys) for member in value])}]"
        case dict():
            names = sorted(value, key=_utf16) if sort_keys else value
            members = [f"{quoted(name)}:{write_json(value[name], sort_keys=sort_keys)}" for name in names]
            return f"{{{','.join(members)}}}"


def _check(value: Json) -> None:
    """Check the depth, and that all strings are valid. Without recursion: `value` may be deeper than allowed."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = _one_level_below(level)
        if not level:
            return
    if any(isinstance(item, dict | list) for item in level):
        raise too_deep()
    _one_level_below(level)


def _one_level_below(level: list[Json]) -> list[Json]:
    below: list[Json] = []
    for item in level:
        if isinstance(item, dict):
            below += item.values()
            _check_text("".join(item))
        elif isinstance(item, list):
            below += item
        elif isinstance(item, str):
            _check_text(item)
    return below


def _check_text(text: str) -> None:
    if not text.isascii() and (found := _SURROGATE.search(text)):
        raise InvalidSchema(f"The schema has half of a surrogate pair, \\u{ord(found[0]):04x}")


def _decimal(digits: str) -> Decimal:
    check_digits(digits)
    try:
        return Decimal(digits)
    except InvalidOperation:
        raise InvalidSchema(f"The exponent of the number {digits} is too large") from None


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise InvalidSchema(f"The schema has two members {twice!r} in one object")
    return members


_DECODER: Final = json.JSONDecoder(
    parse_int=read_integer, parse_float=_decimal, parse_constant=refuse_constant, object_pairs_hook=_members
)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


def _java_decimal(value: Decimal) -> str:
    """BigDecimal.toString, which has the same rules as Decimal's, but has no negative zero."""
    return str(value if value else value.copy_abs())
