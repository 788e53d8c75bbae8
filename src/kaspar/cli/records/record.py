"""Records as commands print them, independent of the client that has read them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kaspar.cli.records.json_text import utf8, write_json
from kaspar.cli.records.types import RecordType, deserialize


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as it is in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int | None = None
    is_append_time: bool = False
    """Whether the broker set the timestamp (message.timestamp.type=LogAppendTime)."""

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}@{self.offset}"


class ReadRecord:
    """A record whose key and value are deserialized on first use."""

    def __init__(self, raw: RawRecord, key_type: RecordType, value_type: RecordType) -> None:
        self.raw = raw
        self._key_type = key_type
        self._value_type = value_type

    @functools.cached_property
    def key(self) -> Any:
        """The key. With `auto` it stays text, because '17' is more often a name than a number. Raises CannotRead, like
        `value`.
        """
        if self._key_type is not RecordType.AUTO or self.raw.key is None:
            return deserialize(self.raw.key, self._key_type)
        return text_or_bytes(self.raw.key)

    @functools.cached_property
    def value(self) -> Any:
        return deserialize(self.raw.value, self._value_type)

    @property
    def unambiguous_value(self) -> Any:
        """The value for JSON output that may be read again. With `auto`, a JSON string or null stays text, including
        its quotes: otherwise it could not be distinguished from text without quotes, or from a tombstone.
        """
        if self._value_type is RecordType.AUTO and self.raw.value is not None and isinstance(self.value, str | None):
            return text_or_bytes(self.raw.value)
        return self.value

    def key_bytes(self) -> bytes | None:
        """The key for output as a plain line: unchanged, unless a type was requested."""
        return _shown(self.raw.key, self._key_type, lambda: self.key)

    def value_bytes(self) -> bytes | None:
        return _shown(self.raw.value, self._value_type, lambda: self.value)

    @functools.cached_property
    def headers(self) -> dict[str, Any]:
        """The headers by name; the last one if several have the same name."""
        return {name: None if value is None else text_or_bytes(value) for name, value in self.raw.headers}


def _shown(data: bytes | None, kind: RecordType, read: Callable[[], Any]) -> bytes | None:
    return data if data is None or kind is RecordType.AUTO else utf8(plain_text(read()))


def plain_text(value: Any) -> str:
    """Format a value: text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else write_json(value)


def text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
