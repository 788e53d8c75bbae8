"""Avro values prefixed with the id of their schema, as in Confluent's GenericAvroSerde.

They are read with the schema with which they were written, and converted to the serde's own, if it has one: added
fields have their defaults, and removed fields are dropped.
"""

import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from kaspar.schemas.schema import InvalidSchema, SchemaType
from kaspar.serialization.avro_schemas import is_recursive, load_schema
from kaspar.serialization.registry_client import RegisteredSchema, SchemaText
from kaspar.streams.serdes.errors import SerializationError, reason_of, unreadable, unwritable
from kaspar.streams.serdes.registered_schemas import RegisteredSchemas, Registry

_NAME = "avro"


class _Written(NamedTuple):
    """The prefix and the schema with which values are written to a topic."""

    prefix: bytes
    schema: Any
    """The schema as parsed by fastavro."""


class RegisteredAvro:
    """`text` is the schema of written values, and the one to which read values are converted; None is for reading only,
    without conversion."""

    def __init__(self, text: str | None, registry: Registry, *, is_key: bool) -> None:
        """Raises InvalidSetting, and SerializationError for an invalid schema."""
        from fastavro import schemaless_writer

        self._text = text
        self._schemas = RegisteredSchemas(_NAME, registry, is_key=is_key)
        self._write = schemaless_writer
        self._written: Any = None
        self._name: str | None = None
        if text is not None:
            self._written, self._name = _parsed(text), _record_name(text)
        self._by_topic: dict[str, _Written] = {}
        self._readers: dict[int | UUID, Callable[[bytes], Any]] = {}

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        if self._text is None:
            raise unwritable(_NAME, topic, value, "it has no schema to write with: pass one to serdes.avro")
        written = self._by_topic.get(topic)
        if written is None:
            written = self._by_topic[topic] = self._written_to(topic, self._text, value)
        prefix, schema = written
        if schema == "bytes" and isinstance(value, bytes):
            return prefix + value  # as in Confluent's serializer of byte arrays
        stream = io.BytesIO(prefix)
        stream.seek(len(prefix))
        try:
            self._write(stream, schema, value, strict_allow_default=True)
        except Exception as error:  # fastavro raises many kinds
            raise unwritable(_NAME, topic, value, f"it does not match the schema ({reason_of(error)})") from error
        return stream.getvalue()

    def _written_to(self, topic: str, text: str, value: Any) -> _Written:
        own = SchemaText(SchemaType.AVRO, text)
        registered = self._schemas.written(topic, own, self._name, value)
        schema = self._written
        if registered.schema != own:
            try:
                schema = _fastavro_schema(registered)
            except Exception as error:  # fastavro's own kinds, KeyError and more
                advice = f"the latest schema of the subject cannot be used ({reason_of(error)})"
                raise unwritable(_NAME, topic, value, advice) from error
        return _Written(self._schemas.prefix(registered), schema)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        key, payload = self._schemas.split(topic, data)
        read = self._readers.get(key)
        if read is None:
            schema = self._schemas.schema(topic, data, key, SchemaType.AVRO)
            try:
                read = self._readers[key] = self._reader(schema)
            except Exception as error:  # fastavro's own kinds, and InvalidSchema
                raise unreadable(_NAME, topic, data, f"schema {key} cannot be used ({reason_of(error)})") from error
        try:
            return read(payload)
        except Exception as error:  # EOFError, IndexError, SchemaResolutionError and more
            raise unreadable(
                _NAME, topic, data, f"they are not Avro data of schema {key} ({reason_of(error)})"
            ) from error

    def _reader(self, registered: RegisteredSchema) -> Callable[[bytes], Any]:
        from fastavro import schemaless_reader

        text = registered.schema.text
        if text == '"bytes"':
            return lambda payload: payload
        writer, reader = _fastavro_schema(registered), self._written
        read: Callable[..., Any] = schemaless_reader
        if is_recursive(load_schema(text, registered.referenced)):
            # The compiled reader overflows the stack for endlessly nested values; this one raises an exception.
            from fastavro._read_py import schemaless_reader as checked_reader

            read = checked_reader
        return lambda payload: read(io.BytesIO(payload), writer, reader)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return registered_avro, (self._text, self._schemas.given, self._schemas.is_key)


def registered_avro(text: str | None, registry: Registry, is_key: bool) -> RegisteredAvro:
    return RegisteredAvro(text, registry, is_key=is_key)


def _parsed(text: str) -> Any:
    from fastavro import parse_schema

    try:
        return parse_schema(json.loads(text))
    except Exception as error:  # fastavro's own kinds, KeyError and more
        raise SerializationError(f"The Avro schema is invalid ({type(error).__name__}: {reason_of(error)}).") from error


def _fastavro_schema(registered: RegisteredSchema) -> Any:
    from fastavro import parse_schema

    named: dict[str, Any] = {}
    for each in registered.referenced.values():
        parse_schema(json.loads(each), named)
    return parse_schema(json.loads(registered.schema.text), named)


def _record_name(text: str) -> str | None:
    from kaspar.schemas.avro import parse

    try:
        return parse(text, {}).name
    except InvalidSchema as error:
        raise SerializationError(f"The Avro schema is invalid: {reason_of(error)}.") from error
