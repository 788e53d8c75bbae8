"""Creates records from lines of text, as Kafka's LineMessageReader does.

With `parse.headers` and `parse.key` a line is `h1:v1,h2:v2<TAB>key<TAB>value`. Lines end as in Java: with a line feed,
a carriage return, or both. They remain bytes: invalid UTF-8 is sent unchanged.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kaspar.tools.command_line import CommandFailed

READER_CLASS: Final = "org.apache.kafka.tools.LineMessageReader"
_DEFAULTS: Final = {
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}
_MUST_DIFFER: Final = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)

Headers = list[tuple[str, str | bytes | None]]


class InputRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers


class LineParser:
    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises CommandFailed."""
        settings: dict[str, str | None] = {**_DEFAULTS, "null.marker": None, **properties}
        for one, other in _MUST_DIFFER:
            if settings[one] == settings[other]:
                raise CommandFailed(f"{one} and {other} may not be equal")

        def octets(name: str) -> bytes:
            return (settings[name] or "").encode()

        self._parse_key = _is_true(settings.get("parse.key"))
        self._parse_headers = _is_true(settings.get("parse.headers"))
        self._ignore_error = _is_true(settings.get("ignore.error"))
        self._key_separator = octets("key.separator")
        self._headers_delimiter = octets("headers.delimiter")
        self._headers_key_separator = octets("headers.key.separator")
        self._null_marker = None if settings["null.marker"] is None else octets("null.marker")
        try:
            self._headers_separator = re.compile(octets("headers.separator"))
        except re.error as problem:
            raise CommandFailed(f"headers.separator is not a regular expression: {problem}") from None

    @property
    def values_only(self) -> bool:
        """Whether a whole line is a value."""
        return not self._parse_key and not self._parse_headers and self._null_marker is None

    def parse(self, line: bytes, number: int) -> InputRecord:
        """Parse a line. Line numbers start at 1. Raises CommandFailed."""
        headers = key = None
        rest = line
        if self._parse_headers:
            headers, rest = self._split(rest, self._headers_delimiter, "headers delimiter", line, number)
        if self._parse_key:
            key, rest = self._split(rest, self._key_separator, "key separator", line, number)
        return InputRecord(self._or_null(key), self._or_null(rest), self._headers(self._or_null(headers), number))

    def _split(self, text: bytes, separator: bytes, name: str, line: bytes, number: int) -> tuple[bytes | None, bytes]:
        before, found, after = text.partition(separator) if separator else (b"", b"-", text)
        if found:
            return before, after
        if self._ignore_error:
            return None, text
        raise CommandFailed(f"No {name} found on line number {number}: '{line.decode(errors='replace')}'")

    def _or_null(self, field: bytes | None) -> bytes | None:
        return None if field == self._null_marker else field

    def _headers(self, text: bytes | None, number: int) -> Headers:
        if text is None:
            return []
        pairs = self._headers_separator.split(text)
        while len(pairs) > 1 and not pairs[-1]:  # like Java's split()
            pairs.pop()
        return [self._header(pair, number) for pair in pairs]

    def _header(self, pair: bytes, number: int) -> tuple[str, str | bytes | None]:
        key, found, value = pair.partition(self._headers_key_separator)
        name = key.decode(errors="replace")
        if not found:
            if self._ignore_error:
                return name, None
            raise CommandFailed(f"No header key separator found in pair '{name}' on line number {number}")
        if key == self._null_marker:
            raise CommandFailed(f"Header keys should not be equal to the null marker '{name}' as they can't be null")
        return name, self._or_null(value)


class LineSplitter:
    """Splits a stream that is read in arbitrary pieces into lines."""

    def __init__(self) -> None:
        self._begun = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes."""
        text = self._begun + piece
        lines = text.splitlines(keepends=True)
        # The line feed after a carriage return may be in the next piece.
        self._begun = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        return [_without_end(line) for line in lines]

    def finish(self) -> Iterator[bytes]:
        """The last line, if the stream ends without a line end."""
        if self._begun:
            yield _without_end(self._begun)
        self._begun = b""


def _without_end(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith((b"\n", b"\r")) else line


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"
