"""Plain values as YAML, for `--yaml`.

A string that could be read as another type is double-quoted, and unprintable characters are escaped. Other strings,
such as names of topics, are not quoted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+(-][A-Za-z0-9_./+()-]*)*", re.ASCII)
_WORDS_WITH_A_MEANING: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"}
)
_INDENT: Final = "  "


def yaml_text(value: object) -> str:
    """A document, with a newline at its end."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: object) -> Iterator[str]:
    match value:
        case Mapping() if value:
            for key, each in value.items():
                yield from _entry(f"{_scalar(str(key))}:", each)
        case list() | tuple() if value:
            for each in value:
                yield from _item(each)
        case _:
            yield _scalar(value)


def _entry(key: str, value: object) -> Iterator[str]:
    if not _is_nested(value):
        yield f"{key} {_scalar(value)}"
        return
    yield key
    for line in _lines(value):
        yield line if isinstance(value, Sequence) else f"{_INDENT}{line}"


def _item(value: object) -> Iterator[str]:
    """The lines of a list item. The first line of a nested value follows the dash."""
    for number, line in enumerate(_lines(value)):
        yield f"- {line}" if number == 0 else f"{_INDENT}{line}"


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number(value)
        case str():
            return value if _is_plain(value) else _quoted(value)
        case Mapping():
            return "{}"
        case list() | tuple():
            return "[]"
        case _:
            raise TypeError(f"{type(value).__name__} is not a plain value")


def _number(value: float) -> str:
    special = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}
    text = repr(value)
    if "e" in text and "." not in text:  # in YAML 1.1 this would be a string without the dot
        text = text.replace("e", ".0e")
    return special.get(text, text)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS_WITH_A_MEANING
