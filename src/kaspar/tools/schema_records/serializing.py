"""Creates keys and values from JSON, like Confluent's SchemaMessageReader.

Key and value are JSON for their schemas; with `key.serializer` the key is plain text or a number instead.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kaspar.serialization.errors import InvalidValue
from kaspar.serialization.records import RecordWriter
from kaspar.serialization.registry_client import RegistryClient
from kaspar.serialization.registry_config import registry_config
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.java_numbers import parse_int, parse_long
from kaspar.tools.schema_records.formats import SchemaFormat
from kaspar.tools.schema_records.schemas import chosen_schema, writer_of

_SERIALIZERS: Final = "org.apache.kafka.common.serialization."
FieldSerializer = Callable[[bytes, int], bytes]
"""Takes a key or value, and the number of its line. Raises CommandFailed."""


def field_serializers(
    schema_format: SchemaFormat, topic: str, properties: Mapping[str, str]
) -> tuple[FieldSerializer, FieldSerializer]:
    """The serializers for keys and for values. Raises CommandFailed and InvalidSetting."""
    registry = RegistryClient(registry_config(properties))
    value = _SchemaField("value", schema_format, registry, topic, properties)
    if properties.get("parse.key", "").strip().lower() != "true":
        return _as_it_is, value
    serializer = properties.get("key.serializer")
    if serializer is not None:
        return _plain_serializer(serializer), value
    return _SchemaField("key", schema_format, registry, topic, properties), value


class _SchemaField:
    """The key or the value. Like Confluent's, registers the schema with the first one that is not null."""

    def __init__(
        self,
        part: str,
        schema_format: SchemaFormat,
        registry: RegistryClient,
        topic: str,
        properties: Mapping[str, str],
    ) -> None:
        self._title = schema_format.title
        self._schema = chosen_schema(registry, schema_format, part, properties)
        self._new_writer: Callable[[], RecordWriter] = lambda: writer_of(
            registry, self._schema, topic, part, properties
        )
        self._writer: RecordWriter | None = None

    def __call__(self, text: bytes, number: int) -> bytes:
        if self._writer is None:
            self._writer = self._new_writer()
        try:
            return self._writer.to_bytes(msgspec.json.decode(text))
        except msgspec.MsgspecError as problem:
            raise self._refused(text, number, f"{problem}.") from None
        except (UnicodeDecodeError, RecursionError) as problem:
            raise self._refused(text, number, f"{type(problem).__name__}: {problem}.") from None
        except InvalidValue as problem:
            raise self._refused(text, number, str(problem)) from None

    def _refused(self, text: bytes, number: int, reason: str) -> CommandFailed:
        shown = text.decode(errors="replace")
        return CommandFailed(
            f"Error deserializing json {shown} to {self._title} of schema {self._schema.text}\n"
            f"Line number {number}: {reason}"
        )


def _as_it_is(text: bytes, number: int) -> bytes:
    del number
    return text


def _plain_serializer(class_name: str) -> FieldSerializer:
    """One of Kafka's serializers that Confluent's line reader supports."""
    match class_name.strip().removeprefix(_SERIALIZERS):
        case "StringSerializer":
            return _as_it_is
        case "LongSerializer":
            return _number("Long", ">q", parse_long)
        case "IntegerSerializer":
            return _number("Integer", ">i", parse_int)
        case "ShortSerializer":
            return _number("Short", ">h", parse_int)
    raise CommandFailed(
        f"Error initializing key.serializer: {class_name} is not known. In {_SERIALIZERS[:-1]} StringSerializer, "
        "LongSerializer, IntegerSerializer and ShortSerializer are."
    )


def _number(name: str, layout: str, parse: Callable[[str], int]) -> FieldSerializer:
    form = struct.Struct(layout)

    def serialize(text: bytes, number: int) -> bytes:
        try:
            return form.pack(parse(text.decode()))
        except (ValueError, struct.error):
            shown = text.decode(errors="replace")
            raise CommandFailed(f"Line number {number}: the key '{shown}' is no {name}.") from None

    return serialize
