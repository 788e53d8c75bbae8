"""Splits a stream of bytes into consecutive JSON values, with or without white space between them.

Only the ends of values are searched: strings and brackets are tracked, everything else is left to the decoder. So a
value that arrives in many pieces is scanned once, and a value that is too large or nested too deeply ends the stream
before it costs more.
"""

import re
from typing import Final

from kaspar.base.errors import KasparError

MAX_DEPTH: Final = 500
"""Decoders are recursive; this is well below Python's recursion limit."""
ANY_DEPTH: Final = 1 << 30
SCANNED_BYTES: Final = 8 * 1024
"""The maximum scanned by one call, since the event loop waits for it."""

_BRACKET: Final = re.compile(rb'["{}\[\]]')
_IN_STRING: Final = re.compile(rb'["\\]')
_QUOTE, _BACKSLASH, _OPENING = ord('"'), ord("\\"), b"{["


class MalformedStream(KasparError):
    """The rest of the stream cannot be split into values."""


class ValueTooLarge(MalformedStream):
    pass


class JsonValues:
    """Pass received bytes to `feed`, take all complete values with `next`, and call `end` at the end of the stream."""

    def __init__(self, max_bytes: int, max_depth: int = MAX_DEPTH, *, separators: bytes = b" \t\r\n") -> None:
        """`separators` are the characters that may stand between values."""
        self._begins = re.compile(b"[^" + re.escape(separators) + b"]")
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._buffer = bytearray()
        self._start = 0
        """Where the value that is being scanned starts, or where the last one ended."""
        self._at = 0
        self._seen = 0
        """How far the buffer has been scanned; an incomplete escape at the end is scanned again."""
        self._depth = 0
        self._is_in_string = False

    @property
    def buffered(self) -> int:
        """The number of bytes that have been fed but not returned as values."""
        return len(self._buffer) - self._start

    @property
    def has_more(self) -> bool:
        """Whether `next` returned None because it reached the limit of one call (SCANNED_BYTES), not the end of the
        buffer."""
        return self._seen < len(self._buffer)

    def feed(self, data: bytes) -> None:
        del self._buffer[: self._start]
        self._at -= self._start
        self._seen -= self._start
        self._start = 0
        self._buffer += data

    def next(self) -> bytes | None:
        """The next value, which is an object or an array if it is JSON. None if it is not complete, or if more bytes
        must be scanned to find out, which the next call does (`has_more`). Raises MalformedStream."""
        if self._depth == 0 and not self._begin():
            return None
        end = self._end_of_value()
        if (self._at if end is None else end) - self._start > self._max_bytes:
            raise ValueTooLarge(f"A record is larger than {self._max_bytes} bytes.")
        if end is None:
            return None
        value = bytes(self._buffer[self._start : end])
        self._start = end
        return value

    def end(self) -> None:
        """Raises MalformedStream if the last value is incomplete."""
        if self._depth:
            raise MalformedStream("Unexpected end-of-input: a record is not complete.")

    def _begin(self) -> bool:
        found = self._begins.search(self._buffer, self._at)
        if found is None:
            self._start = self._at = self._seen = len(self._buffer)
            return False
        self._start = self._at = found.start()
        character = self._buffer[self._start]
        if character not in _OPENING:
            shown = chr(character) if 0x20 < character < 0x7F else ""
            raise MalformedStream(f"Unexpected character ('{shown}' (code {character})): expected the {{ of a record.")
        return True

    def _end_of_value(self) -> int | None:
        """The end of the value. None if it has not arrived, or is not within the bytes that one call scans."""
        buffer = self._buffer
        size = self._seen = min(self._at + SCANNED_BYTES, len(buffer))
        while True:
            found = (_IN_STRING if self._is_in_string else _BRACKET).search(buffer, self._at, size)
            if found is None:
                self._at = size
                return None
            character = buffer[found.start()]
            if character == _BACKSLASH:
                if found.end() == size:  # the escaped character has not arrived
                    self._at = found.start()
                    return None
                self._at = found.end() + 1
                continue
            self._at = found.end()
            if character == _QUOTE:
                self._is_in_string = not self._is_in_string
            elif character in _OPENING:
                self._depth += 1
                if self._depth > self._max_depth:
                    raise MalformedStream(f"A record is nested deeper than {self._max_depth} levels.")
            else:
                self._depth -= 1
                if self._depth == 0:
                    return self._at
