"""The formats of records in the API, Confluent's "embedded formats", and their conversion between JSON and bytes.

An encoder converts the JSON of a key or value to bytes, and raises RestError. A decoder converts bytes to JSON, and
raises UndecodableRecord. JSON is parsed only where necessary, so numbers and text stay exactly as they were written.
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
    """The bytes of a key or value do not have the format."""


class EmbeddedFormat(Enum):
    BINARY = "binary"
    """Base64 text."""
    JSON = "json"
    """Without a schema."""
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def schema_type(self) -> SchemaType | None:
        """The type of the schemas in the registry for this format; None if it has no schemas."""
        return _SCHEMA_TYPES.get(self)


_SCHEMA_TYPES = {
    EmbeddedFormat.AVRO: SchemaType.AVRO,
    EmbeddedFormat.JSONSCHEMA: SchemaType.JSON,
    EmbeddedFormat.PROTOBUF: SchemaType.PROTOBUF,
}
