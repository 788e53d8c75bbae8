"""Converts values of a schema between JSON and bytes."""

from collections.abc import Mapping
from typing import Any, Protocol

from kaspar.base.errors import KasparError
from kaspar.schemas.schema import SchemaType


class Values(Protocol):
    """The values of one schema. Keep it for reuse. The bytes are those after the schema's id in a record."""

    def to_bytes(self, value: Any) -> bytes:
        """Encode a JSON value (dicts, lists, text, numbers, true, false, None). Raises InvalidValue."""

    def is_quick(self, data: bytes) -> bool:
        """Whether `to_bytes_quickly` encodes or refuses JSON of these bytes within a few milliseconds."""

    def to_bytes_quickly(self, value: Any) -> bytes:
        """Like `to_bytes`. Raises TooCostly if it takes too long, where this does not follow from the size."""

    def from_bytes(self, data: bytes) -> Any:
        """Decode a value. Raises UnreadableBytes."""


def values_of(kind: SchemaType, text: str, references: Mapping[str, str], message: str | None = None) -> Values:
    """Prepare a schema. `references` has the texts that it refers to, directly or not, by the names used in the texts,
    dependencies first. `message` is the full name of the message to write if it is not the first one of a Protobuf
    schema. Raises InvalidSchema, and KasparError if the format's library is not installed.
    """
    try:
        return _values_of(kind, text, references, message)
    except ModuleNotFoundError as problem:
        raise KasparError(f"{kind.value} needs {problem.name}: pip install 'kaspar[registry]'") from problem


def _values_of(kind: SchemaType, text: str, references: Mapping[str, str], message: str | None) -> Values:
    match kind:  # each needs its own library
        case SchemaType.AVRO:
            from kaspar.serialization.avro_values import AvroValues

            return AvroValues(text, references)
        case SchemaType.JSON:
            from kaspar.serialization.json_schema_values import JsonSchemaValues

            return JsonSchemaValues(text, references)
        case SchemaType.PROTOBUF:
            from kaspar.serialization.protobuf_values import ProtobufValues

            return ProtobufValues(text, references, message)
