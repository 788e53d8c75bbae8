"""Keys and values of records with the schemas of a registry: with the schema's id as a prefix, or its GUID in a header.

Commands encode and decode in their own process. In a server values and schemas are untrusted: with `ValueProcesses`,
those that take more than a few milliseconds are handled in other processes.
"""

import sys
import threading
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.schemas.schema import InvalidSchema, SchemaType
from kaspar.serialization.errors import InvalidValue, SerializationError, TooCostly, UnreadableBytes
from kaspar.serialization.quick_values import QUICK_BYTES
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient
from kaspar.serialization.value_process import ValueSchema
from kaspar.serialization.value_processes import ValueProcesses
from kaspar.serialization.values import Values, values_of
from kaspar.serialization.wire_format import Headers, SchemaKey, guid_header, id_prefix, read_frame, read_indexes

_MAX_PREPARED: Final = 1000
_LARGE_SCHEMA: Final = 64 * 1024
"""Schemas with more characters are only prepared in processes."""
_QUICK_DECODED: Final = QUICK_BYTES * 4 * 1024
"""Bytes of a value times characters of its schema: a byte can stand for many nested records."""
_QUICK_JSON: Final = 64 * 1024
"""The limit for JSON, which is decoded without its schema."""
_MAX_JSON: Final = 8 << 20
"""The limit for a value that a process has decoded and that is then used here."""

_json: Final = msgspec.json.Decoder()
_to_json: Final = msgspec.json.Encoder().encode


class Decoded(NamedTuple):
    value: Any
    schema: RegisteredSchema


class DecodedJson(NamedTuple):
    json: bytes
    schema: RegisteredSchema


@dataclass(frozen=True, slots=True)
class RecordWriter:
    """Encodes values of one registered schema."""

    schema: RegisteredSchema
    _prefix: bytes
    _values: Values | None
    """None for a schema that is only prepared in processes."""
    _message: str | None
    _processes: ValueProcesses | None

    def to_bytes(self, value: Any) -> bytes:
        """The value with the schema's id as a prefix. Raises InvalidValue."""
        assert self._values is not None, "it was made for values that processes encode"
        return self._prefix + self._values.to_bytes(value)

    def quickly(self, data: bytes) -> bytes:
        """The same bytes as `to_bytes`, from JSON, within a few milliseconds. Raises InvalidValue, and TooCostly if it
        would take longer."""
        if self._values is None or not self._values.is_quick(data):
            raise TooCostly
        try:
            value = _json.decode(data)
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise InvalidValue(str(problem)) from None
        return self._prefix + self._values.to_bytes_quickly(value)

    def slowly(self, data: bytes) -> bytes:
        """Encode in a process what is too costly for `quickly`. Blocks. Raises InvalidValue."""
        assert self._processes is not None
        return self._prefix + self._processes.encode(_value_schema(self.schema, self._message), data)

    def to_bytes_and_header(self, value: Any) -> tuple[bytes, bytes]:
        """The encoded value, and the value of its header (`KEY_HEADER` or `VALUE_HEADER`). Raises InvalidValue."""
        if self.schema.guid is None:
            raise SerializationError("The registry gives its schemas no GUIDs, so none can be put into a header.")
        assert self._values is not None
        payload = self._values.to_bytes(value)
        if self.schema.schema.type is not SchemaType.PROTOBUF:
            return payload, guid_header(self.schema.guid)
        indexes, start = read_indexes(payload)
        return payload[start:], guid_header(self.schema.guid, indexes)


def record_writer(
    schema: RegisteredSchema, message: str | None = None, processes: ValueProcesses | None = None
) -> RecordWriter:
    """Create a writer. `message` is as for `values_of`. Raises SerializationError for an unusable schema."""
    if schema.id is None:
        raise SerializationError("A schema that was asked for by its GUID has no id to write.")
    values = None if processes is not None and _is_large(schema) else _values(schema, message)
    return RecordWriter(schema, id_prefix(schema.id), values, message, processes)


class _Prepared(NamedTuple):
    schema: RegisteredSchema
    values: Values | None
    quick_bytes: int
    """The size up to which values are decoded here and not in processes."""


class RecordReader:
    """Decodes keys and values with the schemas that they name. May be used by several threads."""

    def __init__(self, registry: RegistryClient, processes: ValueProcesses | None = None) -> None:
        self._registry = registry
        self._processes = processes
        self._prepared = BoundedCache[int | UUID, _Prepared](_MAX_PREPARED)
        self._preparing = threading.Lock()

    def decode(self, data: bytes, headers: Headers = None, *, is_key: bool = False) -> Decoded:
        """Decode a key or a value to JSON. Blocks for the first record of a schema. Raises UnreadableBytes,
        SerializationError for an unusable schema, and RegistryError."""
        (schema, values, quick_bytes), payload = self._read(data, headers, is_key=is_key)
        if values is not None and len(payload) <= quick_bytes:
            return Decoded(values.from_bytes(payload), schema)
        json = self._by_process(schema, payload)
        if len(json) > _MAX_JSON:
            raise UnreadableBytes(f"The value has {len(json)} bytes of JSON, which are too many to use it.")
        return Decoded(_json.decode(json), schema)

    def decode_to_json(self, data: bytes, headers: Headers = None, *, is_key: bool = False) -> DecodedJson:
        """Like `decode`, but returns encoded JSON."""
        (schema, values, quick_bytes), payload = self._read(data, headers, is_key=is_key)
        if values is not None and len(payload) <= quick_bytes:
            return DecodedJson(_to_json(values.from_bytes(payload)), schema)
        return DecodedJson(self._by_process(schema, payload), schema)

    def blocks_for(self, data: bytes, headers: Headers = None, *, is_key: bool = False) -> bool:
        """Whether `decode` would have to request the schema from the registry."""
        try:
            framed = read_frame(data, headers, is_key=is_key)
        except UnreadableBytes:
            return False
        return self._prepared.get(framed.schema) is None

    def _by_process(self, schema: RegisteredSchema, payload: bytes) -> bytes:
        assert self._processes is not None
        return self._processes.decode(_value_schema(schema), payload)

    def _read(self, data: bytes, headers: Headers, *, is_key: bool) -> tuple[_Prepared, bytes]:
        framed = read_frame(data, headers, is_key=is_key)
        prepared = self._prepared.get(framed.schema) or self._prepare(framed.schema)
        payload = data[framed.start :]
        return prepared, framed.indexes + payload if framed.indexes else payload

    def _prepare(self, key: SchemaKey) -> _Prepared:
        registry = self._registry
        schema = registry.schema_by_guid(key) if isinstance(key, UUID) else registry.schema_by_id(key)
        with self._preparing:  # preparing a schema takes a while, so only one thread does it
            found = self._prepared.get(key)
            if found is None:
                has_processes = self._processes is not None
                values = None if has_processes and _is_large(schema) else _values(schema, None)
                found = _Prepared(schema, values, _quick_bytes(schema) if has_processes else sys.maxsize)
                self._prepared.put(key, found)
            return found


def _values(schema: RegisteredSchema, message: str | None) -> Values:
    try:
        return values_of(schema.schema.type, schema.schema.text, schema.referenced, message)
    except InvalidSchema as problem:
        name = f"{schema.id or schema.guid}"
        raise SerializationError(f"Schema {name} cannot be used. {problem}") from problem


def _value_schema(schema: RegisteredSchema, message: str | None = None) -> ValueSchema:
    return ValueSchema(schema.schema.type, schema.schema.text, tuple(schema.referenced.items()), message)


def _is_large(schema: RegisteredSchema) -> bool:
    return _value_schema(schema).characters > _LARGE_SCHEMA


def _quick_bytes(schema: RegisteredSchema) -> int:
    """The size up to which values of this schema are decoded here."""
    if schema.schema.type is SchemaType.JSON:
        return _QUICK_JSON
    return min(QUICK_BYTES, _QUICK_DECODED // max(1, _value_schema(schema).characters))
