"""Keys and values of records by the schemas of a registry: with the schema's id in front, or its GUID in a header."""

import threading
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from kaspar.base.bounded_cache import BoundedCache
from kaspar.schemas.schema import InvalidSchema, SchemaType
from kaspar.serialization.errors import SerializationError, UnreadableBytes
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient
from kaspar.serialization.values import Values, values_of
from kaspar.serialization.wire_format import Headers, SchemaKey, guid_header, id_prefix, read_frame, read_indexes

_MAX_PREPARED: Final = 1000


class Decoded(NamedTuple):
    value: Any
    schema: RegisteredSchema


@dataclass(frozen=True, slots=True)
class RecordWriter:
    """Writes values of one registered schema."""

    schema: RegisteredSchema
    _prefix: bytes
    _values: Values

    def to_bytes(self, value: Any) -> bytes:
        """With the schema's id in front. Raises InvalidValue."""
        return self._prefix + self._values.to_bytes(value)

    def to_bytes_and_header(self, value: Any) -> tuple[bytes, bytes]:
        """The value of the header is for `wire_format.KEY_HEADER` or `VALUE_HEADER`. Raises InvalidValue."""
        if self.schema.guid is None:
            raise SerializationError("The registry gives its schemas no GUIDs, so none can be put into a header.")
        payload = self._values.to_bytes(value)
        if self.schema.schema.type is not SchemaType.PROTOBUF:
            return payload, guid_header(self.schema.guid)
        indexes, start = read_indexes(payload)
        return payload[start:], guid_header(self.schema.guid, indexes)


def record_writer(schema: RegisteredSchema, message: str | None = None) -> RecordWriter:
    """`message` is as for `values_of`. Raises SerializationError for a schema that cannot be used."""
    if schema.id is None:
        raise SerializationError("A schema that was asked for by its GUID has no id to write.")
    return RecordWriter(schema, id_prefix(schema.id), _values(schema, message))


class RecordReader:
    """Reads keys and values by the schemas that they name. May be used by several threads."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        self._prepared = BoundedCache[int | UUID, tuple[RegisteredSchema, Values]](_MAX_PREPARED)
        self._preparing = threading.Lock()

    def decode(self, data: bytes, headers: Headers = None, *, is_key: bool = False) -> Decoded:
        """As JSON. Blocks at the first record of a schema. Raises UnreadableBytes, SerializationError for a schema that
        cannot be used, and RegistryError."""
        framed = read_frame(data, headers, is_key=is_key)
        schema, values = self._prepared.get(framed.schema) or self._prepare(framed.schema)
        payload = data[framed.start :]
        return Decoded(values.from_bytes(framed.indexes + payload if framed.indexes else payload), schema)

    def blocks_for(self, data: bytes, headers: Headers = None, *, is_key: bool = False) -> bool:
        """Whether `decode` would ask the registry first."""
        try:
            framed = read_frame(data, headers, is_key=is_key)
        except UnreadableBytes:
            return False
        return self._prepared.get(framed.schema) is None

    def _prepare(self, key: SchemaKey) -> tuple[RegisteredSchema, Values]:
        registry = self._registry
        schema = registry.schema_by_guid(key) if isinstance(key, UUID) else registry.schema_by_id(key)
        with self._preparing:  # a schema takes a while, so only one thread does it
            found = self._prepared.get(key)
            if found is None:
                found = (schema, _values(schema, None))
                self._prepared.put(key, found)
            return found


def _values(schema: RegisteredSchema, message: str | None) -> Values:
    try:
        return values_of(schema.schema.type, schema.schema.text, schema.referenced, message)
    except InvalidSchema as problem:
        name = f"{schema.id or schema.guid}"
        raise SerializationError(f"Schema {name} cannot be used. {problem}") from problem
