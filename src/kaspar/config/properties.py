"""Reads the syntax of Java properties: comments, continued lines, escapes."""

import re
from collections.abc import Iterator

from kaspar.base.errors import InvalidSetting

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


def read_properties(text: str) -> dict[str, str]:
    """Parse a Java properties text to keys and values. The last value of a repeated key counts."""
    return dict(_key_and_value(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """The lines without comments and blank ones, each joined with its continuation lines."""
    lines = iter(re.split(r"\r\n|\n|\r", text))
    for line in lines:
        line = line.lstrip(_BLANK)
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(_BLANK)
        yield line


def _continues(line: str) -> bool:
    """Whether the line ends in an odd number of backslashes; an even number is that many escaped ones."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_and_value(line: str) -> tuple[str, str]:
    """Split a line. The key ends at the first unescaped =, : or blank. Blanks around the separator are skipped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    key = _unescape(line[:end], "the name of a setting")
    return key, _unescape(rest, f"the value of {key}")


def _unescape(text: str, what: str) -> str:
    """Resolve escapes. The error does not repeat the text, which may be a password."""

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise InvalidSetting(f"{what} contains \\u without four hexadecimal digits")
        return _ESCAPES.get(match[2], match[2])

    unescaped = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.?))", plain, text)
    # Java writes a character outside the basic plane as two \u escapes.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
