"""Produces one record that a person has entered on the page: its key, value and headers as text, JSON, hexadecimal, a
number, or by a schema of the registry.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kaspar.client.cluster import Client
from kaspar.console.messages.writing import RecordWriter, Written
from kaspar.console.problems import Unacceptable
from kaspar.console.registries import CallersRegistry
from kaspar.records.record import Record
from kaspar.serialization.errors import SerializationError

_MAX_HEADERS: Final = 1000
_MAX_TIMESTAMP: Final = (1 << 63) - 1
_json: Final = msgspec.json.Decoder()


class Part(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A key, a value, or the value of a header."""

    format: str = "null"
    data: str = ""
    subject: str | None = None
    """The subject for the format `schema`: its latest version is used, unless an id is given."""
    schema_id: int | None = None
    message: str | None = None
    """The full name of a Protobuf message that is not the first of its schema."""


class HeaderPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str
    value: Part = Part()


class NewRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a request. A value of the format `null` is a tombstone."""

    key: Part = Part()
    value: Part = Part()
    headers: tuple[HeaderPart, ...] = ()
    partition: int | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Encoding:
    registry: CallersRegistry | None

    def bytes_of(self, part: Part, what: str) -> bytes | None:
        """The bytes of a part; None for null. Raises Unacceptable with a sentence that names the part."""
        match part.format:
            case "null":
                return None
            case "text":
                return part.data.encode()
            case "json":
                return _checked_json(part.data, what)
            case "hex":
                return _from_hex(part.data, what)
            case "integer":
                return _from_number(part.data, what)
            case "schema":
                return self._by_schema(part, what)
        raise Unacceptable(f"{what} has the unknown format {part.format!r}.")

    def _by_schema(self, part: Part, what: str) -> bytes:
        if self.registry is None:
            raise Unacceptable("No schema registry is configured: set schema.registry.url.")
        _json_value(part.data, what)  # so that the error says that the JSON is invalid
        client = self.registry.client
        if part.schema_id is None and not part.subject:
            raise Unacceptable(f"{what} needs a subject or a schema id.")
        try:
            schema = (
                client.latest(part.subject or "") if part.schema_id is None else client.schema_by_id(part.schema_id)
            )
            return self.registry.encode(schema, part.message, part.data.encode())
        except SerializationError as problem:
            raise Unacceptable(f"{what} does not match its schema: {problem}") from None


def produce(client: Client, topic: str, new: NewRecord, registry: CallersRegistry | None) -> Written:
    """Write a record. Blocks. Raises Unacceptable, NotThere and Refused."""
    if len(new.headers) > _MAX_HEADERS:
        raise Unacceptable(f"A record can have at most {_MAX_HEADERS} headers here.")
    if new.timestamp is not None and not 0 <= new.timestamp <= _MAX_TIMESTAMP:
        raise Unacceptable("The timestamp is negative or exceeds 64 bits.")
    encoding = Encoding(registry)
    key = encoding.bytes_of(new.key, "The key")
    value = encoding.bytes_of(new.value, "The value")
    headers = tuple((each.name, encoding.bytes_of(each.value, f"The header {each.name}")) for each in new.headers)
    writer = RecordWriter(client)
    partition = writer.partition_of(topic, key, new.partition)
    timestamp = writer.now_ms() if new.timestamp is None else new.timestamp
    return writer.write(topic, partition, [Record(timestamp, key, value, headers)])


def _checked_json(text: str, what: str) -> bytes:
    _json_value(text, what)
    return text.encode()


def _json_value(text: str, what: str) -> Any:
    try:
        return _json.decode(text.encode())
    except (msgspec.DecodeError, RecursionError) as problem:
        raise Unacceptable(f"{what} is not valid JSON: {problem}.") from None


def _from_hex(text: str, what: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as problem:
        raise Unacceptable(f"{what} is not hexadecimal: {problem}.") from None


def _from_number(text: str, what: str) -> bytes:
    """A number as eight bytes, like Java's LongSerializer."""
    try:
        return struct.pack(">q", int(text))
    except (ValueError, struct.error):
        raise Unacceptable(f"{what} is not a 64-bit integer.") from None
