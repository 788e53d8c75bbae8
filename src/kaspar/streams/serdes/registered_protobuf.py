"""Messages of a generated class, prefixed with the id of their schema, as in Confluent's KafkaProtobufSerde.

The schema is the file that the class was generated from. The files that it imports are registered before it, each under
its own name, and referenced; every registry has Google's files.
"""

import base64
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kaspar.schemas.schema import InvalidSchema, Reference, SchemaType
from kaspar.serialization.errors import RegistryError, RegistryUnavailable, UnreadableBytes
from kaspar.serialization.protobuf_values import file_of, indexes_of
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.wire_format import read_indexes, write_indexes
from kaspar.streams.serdes.errors import reason_of, unreadable, unwritable, wrong_type
from kaspar.streams.serdes.registered_schemas import RegisteredSchemas, Registry

M = TypeVar("M")

_KNOWN = ("google/protobuf/", "google/type/", "confluent/")


class RegisteredProtobuf(Generic[M]):
    def __init__(self, message_class: Any, registry: Registry, *, is_key: bool) -> None:
        """Raises InvalidSetting."""
        self._class: type[M] = message_class
        self._descriptor: Any = message_class.DESCRIPTOR
        self._parse: Callable[[bytes], M] = message_class.FromString
        self._schemas = RegisteredSchemas(f"protobuf({message_class.__name__})", registry, is_key=is_key)
        self._schema: SchemaText | None = None
        self._by_topic: dict[str, bytes] = {}

    def serialize(self, topic: str, value: M | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, self._class):
            raise wrong_type(self._schemas.name, topic, value, self._class.__name__)
        message: Any = value
        try:
            if self._schema is None:
                self._schema = _schema_of(self._descriptor.file, self._schemas.client)
            payload: bytes = message.SerializeToString(deterministic=True)
        except RegistryUnavailable:
            raise
        except RegistryError as error:
            advice = f"the registry rejected a file that it imports ({reason_of(error)})"
            raise unwritable(self._schemas.name, topic, value, advice) from error
        except Exception as error:  # EncodeError, which is not imported because protobuf is optional
            raise unwritable(self._schemas.name, topic, value, reason_of(error)) from error
        prefix = self._by_topic.get(topic)
        if prefix is None:
            prefix = self._by_topic[topic] = self._prefix(topic, self._schema, value)
        return prefix + payload

    def _prefix(self, topic: str, own: SchemaText, value: M) -> bytes:
        """The prefix of messages: the id of the schema, and the index of the message in it."""
        name = self._descriptor.full_name
        registered = self._schemas.written(topic, own, name, value)
        file = self._descriptor.file
        try:
            if registered.schema != own:
                file = file_of(registered.schema.text, registered.referenced)
            return self._schemas.prefix(registered) + write_indexes(indexes_of(file, name))
        except InvalidSchema as error:
            advice = f"the latest schema of the subject cannot be used ({reason_of(error)})"
            raise unwritable(self._schemas.name, topic, value, advice) from error

    def deserialize(self, topic: str, data: bytes | None) -> M | None:
        if data is None:
            return None
        _, payload = self._schemas.split(topic, data)
        try:
            _, start = read_indexes(payload)
            return self._parse(payload[start:])
        except UnreadableBytes as error:
            raise unreadable(self._schemas.name, topic, data, reason_of(error)) from error
        except Exception as error:  # DecodeError
            raise unreadable(self._schemas.name, topic, data, reason_of(error)) from error

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return registered_protobuf, (self._class, self._schemas.given, self._schemas.is_key)


def registered_protobuf(message_class: type[M], registry: Registry, is_key: bool) -> RegisteredProtobuf[M]:
    return RegisteredProtobuf(message_class, registry, is_key=is_key)


def _schema_of(file: Any, registry: RegistryClient) -> SchemaText:
    """The schema of a file, after registering the files that it imports. Raises RegistryError."""
    references = []
    for imported in file.dependencies:
        if not imported.name.startswith(_KNOWN):
            registered = registry.register(imported.name, _schema_of(imported, registry))
            version = registered.version or registry.latest(imported.name).version
            assert version is not None, "the latest version has a number"
            references.append(Reference(imported.name, imported.name, version))
    text = base64.standard_b64encode(file.serialized_pb).decode()
    return SchemaText(SchemaType.PROTOBUF, text, tuple(references))
