"""JSON values prefixed with the id of their JSON Schema, as in Confluent's KafkaJsonSchemaSerde.

They are validated when they are written, and not again when they are read.
"""

from collections.abc import Callable
from typing import Any

from kaspar.schemas.schema import InvalidSchema, SchemaType, format_of
from kaspar.serialization.errors import InvalidValue, UnreadableBytes
from kaspar.serialization.json_schema_values import JsonSchemaValues
from kaspar.serialization.registry_client import SchemaText
from kaspar.streams.serdes.errors import SerializationError, reason_of, unreadable, unwritable
from kaspar.streams.serdes.registered_schemas import RegisteredSchemas, Registry

_NAME = "json_schema"


class RegisteredJson:
    def __init__(self, text: str, registry: Registry, *, is_key: bool) -> None:
        self._text = text
        self._schemas = RegisteredSchemas(_NAME, registry, is_key=is_key)
        try:
            self._values = JsonSchemaValues(text, {})
            self._name = format_of(SchemaType.JSON).parse(text, {}).name
        except InvalidSchema as error:
            raise SerializationError(f"The JSON Schema is invalid: {reason_of(error)}.") from error
        self._by_topic: dict[str, tuple[bytes, JsonSchemaValues]] = {}

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        written = self._by_topic.get(topic)
        if written is None:
            written = self._by_topic[topic] = self._written_to(topic, value)
        prefix, values = written
        try:
            return prefix + values.to_bytes(value)
        except (InvalidValue, TypeError, ValueError) as error:  # the latter two for values that JSON cannot represent
            raise unwritable(_NAME, topic, value, reason_of(error)) from error

    def _written_to(self, topic: str, value: Any) -> tuple[bytes, JsonSchemaValues]:
        own = SchemaText(SchemaType.JSON, self._text)
        registered = self._schemas.written(topic, own, self._name, value)
        values = self._values
        if registered.schema != own:
            try:
                values = JsonSchemaValues(registered.schema.text, registered.referenced)
            except InvalidSchema as error:
                advice = f"the latest schema of the subject cannot be used ({reason_of(error)})"
                raise unwritable(_NAME, topic, value, advice) from error
        return self._schemas.prefix(registered), values

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        _, payload = self._schemas.split(topic, data)
        try:
            return self._values.from_bytes(payload)
        except UnreadableBytes as error:
            raise unreadable(_NAME, topic, data, reason_of(error)) from error

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return registered_json, (self._text, self._schemas.given, self._schemas.is_key)


def registered_json(text: str, registry: Registry, is_key: bool) -> RegisteredJson:
    return RegisteredJson(text, registry, is_key=is_key)
