"""Turns input entries into records: key, value, headers, partition and timestamp from the options."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaspar.cli.producing.reading import Entry
from kaspar.cli.records.json_path import parse_json_path
from kaspar.cli.records.json_text import utf8, write_json
from kaspar.cli.records.record import plain_text
from kaspar.cli.records.types import RecordType, serialize

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class NewRecord:
    place: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """The options of one run."""

    key: str | None = None
    key_separator: str | None = None
    key_field: str | None = None
    value_field: str | None = None
    key_type: RecordType = RecordType.STRING
    value_type: RecordType = RecordType.STRING
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    tombstones: bool = False
    """Whether an empty value, or JSON's null, is sent as a null value."""

    def record(self, entry: Entry) -> NewRecord:
        """The record for an entry. Raises ValueError with a message that does not contain the entry's place."""
        key, text = self._key_and_text(entry)
        return NewRecord(
            entry.place,
            None if key is None else serialize_text(key, self.key_type),
            self._value(text),
            self.headers,
            self.partition,
            self.timestamp_ms,
        )

    def _key_and_text(self, entry: Entry) -> tuple[str | None, str | None]:
        text = entry.text
        key = self.key if entry.key is None else entry.key
        if self.key_separator is not None and text is not None:
            key, found, text = text.partition(self.key_separator)
            if not found:
                raise ValueError(f"no '{self.key_separator}' between key and value")
        if self.key_field is not None:
            key = field_text(entry.fields, self.key_field)
        if self.value_field is not None:
            text = field_text(entry.fields, self.value_field)
        return key, text

    def _value(self, text: str | None) -> bytes | None:
        if text is None or (self.tombstones and text in ("", "null")):
            return None
        return serialize_text(text, self.value_type)

    def printed_record(self, entry: Entry) -> NewRecord:
        """The record for an entry that `kaspar consume --output json` printed. Options override the entry's fields."""
        fields = entry.fields
        if not isinstance(fields, dict) or not ({"value", "value_base64"} & fields.keys()):
            raise ValueError('not a record; expected {"key": ..., "value": ..., "headers": [...]}')
        key = _printed(fields, "key", self.key_type)
        return NewRecord(
            entry.place,
            key if self.key is None else serialize_text(self.key, self.key_type),
            _printed(fields, "value", self.value_type),
            (*_printed_headers(fields), *self.headers),
            self.partition,
            self.timestamp_ms if self.timestamp_ms is not None else _printed_timestamp(fields),
        )


def serialize_text(text: str, kind: RecordType) -> bytes:
    if kind is RecordType.STRING:
        try:
            return text.encode(errors="surrogateescape")
        except UnicodeEncodeError:  # an unpaired surrogate, from a JSON escape
            return utf8(text)
    return serialize(text, kind)


def field_text(fields: Any, name: str) -> str:
    """The column or member with this name, or else the part that matches the JSON path. Raises ValueError if there is
    none.
    """
    if isinstance(fields, dict) and name in fields:
        return plain_text(fields[name])
    found = parse_json_path(name).find(fields)
    if len(found) != 1:
        raise ValueError(f"no field '{name}'" if not found else f"'{name}' matches {len(found)} fields")
    return plain_text(found[0])


def _printed(fields: Mapping[str, Any], name: str, kind: RecordType) -> bytes | None:
    if (encoded := fields.get(f"{name}_base64")) is not None:
        return _bytes_of(encoded)
    value = fields.get(name)
    if value is None:
        return None
    return serialize_text(write_json(value) if kind is RecordType.JSON else plain_text(value), kind)


def _bytes_of(encoded: Any) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError(f"'{encoded}' is not base64") from None


def _printed_headers(fields: Mapping[str, Any]) -> Headers:
    listed = fields.get("headers") or []
    if not isinstance(listed, list) or not all(isinstance(each, dict) and "name" in each for each in listed):
        raise ValueError('headers are not a list of {"name": ..., "value": ...}')
    return tuple((_header_name(str(each["name"])), _printed(each, "value", RecordType.STRING)) for each in listed)


def _header_name(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the name of a header is not UTF-8 text: {name!a}") from None
    return name


def _printed_timestamp(fields: Mapping[str, Any]) -> int | None:
    timestamp = fields.get("timestamp")
    if timestamp is not None and (not isinstance(timestamp, int) or isinstance(timestamp, bool)):
        raise ValueError(f"timestamp {timestamp!r} is not a number of milliseconds")
    if timestamp is None or timestamp < 0:  # -1 means that the record has no timestamp
        return None
    if timestamp >= 2**63:
        raise ValueError(f"timestamp {timestamp} is too large")
    return timestamp


def parse_header(text: str) -> tuple[str, bytes | None]:
    """Parse 'name=value', or 'name' for a header with a null value. Raises ValueError with a message for users."""
    name, found, value = text.partition("=")
    if not name:
        raise ValueError(f"'{text}' is not a header: use name=value")
    return _header_name(name), value.encode(errors="surrogateescape") if found else None
