"""Values of a schema as JSON, to bytes and back."""

from collections.abc import Mapping
from typing import Any, Protocol

from kaspar.base.errors import KasparError
from kaspar.schemas.schema import SchemaType


class Values(Protocol):
    """Prepared for one schema, to be kept. The bytes are what comes after the schema's id in a record."""

    def to_bytes(self, value: Any) -> bytes:
        """Of a JSON value (dicts, lists, text, numbers, true, false, None). Raises InvalidValue."""

    def is_quick(self, data: bytes) -> bool:
        """Whether JSON of these bytes is encoded by `to_bytes_quickly` within a few milliseconds, or refused."""

    def to_bytes_quickly(self, value: Any) -> bytes:
        """As `to_bytes`. Raises TooCostly where the size of the value does not say how long it takes."""

    def from_bytes(self, data: bytes) -> Any:
        """Raises UnreadableBytes."""


def values_of(kind: SchemaType, text: str, references: Mapping[str, str], message: str | None = None) -> Values:
    """`references` has the texts that the schema refers to, directly or not, by the names that the texts use; what
    others depend on comes first. `message` is the full name of the message that is written if it is not the first of a
    Protobuf schema. Raises InvalidSchema, and KasparError if the format's library is not installed.
    """
    try:
        return _values_of(kind, text, references, message)
    except ModuleNotFoundError as problem:
        raise KasparError(f"{kind.value} needs {problem.name}: pip install 'kaspar[registry]'") from problem


def _values_of(kind: SchemaType, text: str, references: Mapping[str, str], message: str | None) -> Values:
    match kind:  # each brings a library of its own
        case SchemaType.AVRO:
            from kaspar.serialization.avro_values import AvroValues

            return AvroValues(text, references)
        case SchemaType.JSON:
            from kaspar.serialization.json_schema_values import JsonSchemaValues

            return JsonSchemaValues(text, references)
        case SchemaType.PROTOBUF:
            from kaspar.serialization.protobuf_values import ProtobufValues

            return ProtobufValues(text, references, message)
