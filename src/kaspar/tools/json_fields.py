"""Reads the JSON files of Kafka's commands, with Kafka's error messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kaspar.tools.command_line import CommandFailed


def parse(text: str) -> Any:
    """Parse a JSON value; None for blank text, as in Kafka. Raises CommandFailed for invalid JSON."""
    if not text:
        raise CommandFailed("The input string shouldn't be empty")
    if text.isspace():
        return None
    try:
        return json.loads(text)
    except ValueError as problem:
        raise CommandFailed(f"The file is not valid JSON: {problem}") from None


def as_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CommandFailed(f"Expected JSON object, received {_shown(value)}")
    return value


def as_array(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise CommandFailed(f"Expected JSON array, received {_shown(value)}")
    return value


def field(fields: Mapping[str, Any], name: str) -> Any:
    try:
        return fields[name]
    except KeyError:
        raise CommandFailed(f"No such field exists: `{name}`") from None


def as_integer(value: Any, java_type: str = "Integer") -> int:
    bits = 64 if java_type == "Long" else 32
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise CommandFailed(f"Expected `{java_type}` value, received {_shown(value)}")
    return value


def as_string(value: Any) -> str:
    if not isinstance(value, str):
        raise CommandFailed(f"Expected `String` value, received {_shown(value)}")
    return value


def as_list(value: Any) -> Sequence[Any]:
    """Like as_array, but with the error message for a field."""
    if not isinstance(value, list):
        raise CommandFailed(f"Expected `JSON array` value, received {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
