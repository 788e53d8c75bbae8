"""Prints keys and values as JSON, like Confluent's SchemaMessageFormatter.

With `print.schema.ids` the ids of the schemas are printed as well, or their GUIDs if the record has those.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from kaspar.base.errors import KasparError
from kaspar.serialization.errors import SerializationError
from kaspar.serialization.records import RecordReader
from kaspar.serialization.registry_client import RegistryClient
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.wire_format import read_frame

if TYPE_CHECKING:
    from confluent_kafka import Message

FieldPrinter = Callable[["Message"], bytes]
"""Raises SerializationError if the key or value cannot be printed."""

_encode = msgspec.json.Encoder().encode


def field_printers(properties: Mapping[str, str]) -> tuple[FieldPrinter | None, FieldPrinter]:
    """The printers for keys and for values. None for keys if one of Kafka's deserializers prints them. Raises
    InvalidSetting.
    """
    reader = RecordReader(RegistryClient(registry_config(properties)))
    key = None if "key.deserializer" in properties else _field(reader, properties, "key")
    return key, _field(reader, properties, "value")


def _field(reader: RecordReader, properties: Mapping[str, str], part: str) -> FieldPrinter:
    is_key = part == "key"
    null = properties.get("null.literal", "null").encode()
    prints_ids = properties.get("print.schema.ids", "").strip().lower() == "true"
    separator = properties.get("schema.id.separator", "\t").encode()

    def write(message: "Message") -> bytes:
        data: Any = message.key() if is_key else message.value()
        headers: Any = message.headers()
        if data is None:
            return separator.join((null, null)) if prints_ids else null
        try:
            text = _encode(reader.decode(data, headers, is_key=is_key).value)
        except KasparError as problem:
            where = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
            raise SerializationError(f"Error deserializing the {part} of the record in {where}: {problem}") from problem
        if prints_ids:
            return separator.join((text, str(read_frame(data, headers, is_key=is_key).schema).encode()))
        return text

    return write
