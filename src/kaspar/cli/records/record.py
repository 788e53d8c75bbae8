"""A record as the commands print it, whichever client has read it."""

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
    """A record with its key and value deserialized, each when it is first asked for."""

    def __init__(self, raw: RawRecord, key_type: RecordType, value_type: RecordType) -> None:
        self.raw = raw
        self._key_type = key_type
        self._value_type = value_type

    @functools.cached_property
    def key(self) -> Any:
        """Raises CannotRead, as `value` does. `auto` leaves a key text: '17' is more often a name than a number."""
        if self._key_type is not RecordType.AUTO or self.raw.key is None:
            return deserialize(self.raw.key, self._key_type)
        return text_or_bytes(self.raw.key)

    @functools.cached_property
    def value(self) -> Any:
        return deserialize(self.raw.value, self._value_type)

    @property
    def unambiguous_value(self) -> Any:
        """The value for JSON that is read again. What `auto` takes for a string or the null of JSON stays the text that
        it is, quotes included: otherwise it would look like text without quotes, or like a tombstone."""
        if self._value_type is RecordType.AUTO and self.raw.value is not None and isinstance(self.value, str | None):
            return text_or_bytes(self.raw.value)
        return self.value

    def key_bytes(self) -> bytes | None:
        """The key as a plain line shows it: as it is, unless a type was asked for."""
        return _shown(self.raw.key, self._key_type, lambda: self.key)

    def value_bytes(self) -> bytes | None:
        return _shown(self.raw.value, self._value_type, lambda: self.value)

    @functools.cached_property
    def headers(self) -> dict[str, Any]:
        """By name; of several with one name the last."""
        return {name: None if value is None else text_or_bytes(value) for name, value in self.raw.headers}


def _shown(data: bytes | None, kind: RecordType, read: Callable[[], Any]) -> bytes | None:
    return data if data is None or kind is RecordType.AUTO else utf8(plain_text(read()))


def plain_text(value: Any) -> str:
    """Text as it is, everything else as JSON."""
    return value if isinstance(value, str) else write_json(value)


def text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
