"""Protobuf records prefixed with a schema's id and message indexes.

A record is parsed as the reader's message: Protobuf identifies fields by their numbers, so versions of a message read
each other. A record of another message of the same or another schema is bad.
"""

from functools import lru_cache

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

from kaspar.schemas.protobuf.sources import compile_schema
from kaspar.schemas.schema import InvalidSchema, SchemaType
from kaspar.serialization.errors import UnreadableBytes
from kaspar.serialization.registry_client import RegisteredSchema
from kaspar.serialization.registry_config import RegistryConfig
from kaspar.serialization.wire_format import read_frame, read_indexes
from kaspar.spark.formats.registered_schemas import RegisteredSchemas, UnreadableSchema
from kaspar.spark.formats.registry_frames import as_reason
from kaspar.spark.kafka_settings import InvalidOption


class RegisteredMessages:
    """A SchemaLookup that returns the reader's class for each record of its message. Other records raise."""

    def __init__(self, message: type[Message], registry: RegistryConfig) -> None:
        self._message = message
        self._schemas = RegisteredSchemas(registry, SchemaType.PROTOBUF)

    def find(self, record: bytes) -> tuple[type[Message], int]:
        try:
            framed = read_frame(record)
            indexes, start = read_indexes(record, framed.start)
            name = _message_name(self._schemas.find(framed.schema), indexes)
        except (UnreadableBytes, UnreadableSchema) as problem:
            raise ValueError(as_reason(problem)) from problem
        if name != self._message.DESCRIPTOR.full_name:
            raise ValueError(f"it is a {name}")
        return self._message, start


def _message_name(schema: RegisteredSchema, indexes: tuple[int, ...]) -> str:
    names = _message_names(schema.schema.text, tuple(schema.referenced.items()))
    if isinstance(names, str):
        raise UnreadableSchema(f"its schema cannot be used: {names}")
    if indexes not in names:
        raise UnreadableSchema(f"its schema has no message with the indexes {list(indexes)}")
    return names[indexes]


@lru_cache(maxsize=256)
def _message_names(text: str, references: tuple[tuple[str, str], ...]) -> dict[tuple[int, ...], str] | str:
    """The names of a schema's messages by index, or why there are none. Cached for later tasks of this worker."""
    try:
        return message_names(FileDescriptorSet.FromString(compile_schema(text, dict(references))).file[-1])
    except InvalidSchema as problem:
        return as_reason(problem)


def message_names(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """The full names of all messages of a file by their indexes, in the file's order."""
    names: dict[tuple[int, ...], str] = {}

    def add(messages: list[DescriptorProto], within: tuple[int, ...], prefix: str) -> None:
        for index, message in enumerate(messages):
            names[*within, index] = f"{prefix}{message.name}"
            add(list(message.nested_type), (*within, index), f"{prefix}{message.name}.")

    add(list(file.message_type), (), f"{file.package}." if file.package else "")
    return names


def descriptor_set_of(schema: RegisteredSchema) -> bytes:
    """The descriptor set of a registered schema. Raises InvalidOption."""
    try:
        return compile_schema(schema.schema.text, schema.referenced)
    except InvalidSchema as problem:
        raise InvalidOption(f"the Protobuf schema cannot be used: {problem}") from problem
