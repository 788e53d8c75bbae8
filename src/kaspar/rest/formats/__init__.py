"""The formats in which records go through the API, Confluent's "embedded formats": from JSON to bytes and back.

An encoder turns the JSON of a key or value into bytes, and raises RestError. A decoder turns bytes into JSON, and
raises UndecodableRecord. JSON is not parsed where it need not be: numbers and text stay as they were written.
"""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import msgspec

from kaspar.base.errors import KasparError
from kaspar.schemas.schema import SchemaType

Encoder: TypeAlias = Callable[[msgspec.Raw], bytes | None]
Headers: TypeAlias = list[tuple[str, bytes | None]] | None


class UndecodableRecord(KasparError):
    """The bytes of a key or value are not of the format."""


class EmbeddedFormat(Enum):
    BINARY = "binary"
    """Text in base64."""
    JSON = "json"
    """Without a schema."""
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def schema_type(self) -> SchemaType | None:
        """Of the schemas in the registry by which records are written; None if there are none."""
        return _SCHEMA_TYPES.get(self)


_SCHEMA_TYPES = {
    EmbeddedFormat.AVRO: SchemaType.AVRO,
    EmbeddedFormat.JSONSCHEMA: SchemaType.JSON,
    EmbeddedFormat.PROTOBUF: SchemaType.PROTOBUF,
}
