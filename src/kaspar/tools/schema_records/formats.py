"""The three schema formats, by Confluent's names of the classes that read lines and print records."""

from dataclasses import dataclass
from typing import Final

_PACKAGE: Final = "io.confluent.kafka.formatter."


@dataclass(frozen=True, slots=True)
class SchemaFormat:
    type: str
    """The registry's name for it."""
    title: str
    reader: str
    formatter: str


AVRO: Final = SchemaFormat("AVRO", "Avro", f"{_PACKAGE}AvroMessageReader", f"{_PACKAGE}AvroMessageFormatter")
JSON_SCHEMA: Final = SchemaFormat(
    "JSON", "JSON", f"{_PACKAGE}json.JsonSchemaMessageReader", f"{_PACKAGE}json.JsonSchemaMessageFormatter"
)
PROTOBUF: Final = SchemaFormat(
    "PROTOBUF",
    "Protobuf",
    f"{_PACKAGE}protobuf.ProtobufMessageReader",
    f"{_PACKAGE}protobuf.ProtobufMessageFormatter",
)
_FORMATS: Final = (AVRO, JSON_SCHEMA, PROTOBUF)


def format_of_reader(class_name: str) -> SchemaFormat | None:
    return next((each for each in _FORMATS if each.reader == class_name), None)


def is_schema_formatter(class_name: str) -> bool:
    """All three formatters print any record with a schema, because the schema's id determines the format."""
    return any(each.formatter == class_name for each in _FORMATS)
