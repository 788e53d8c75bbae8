"""confluent-kafka-python behind the face of all clients, for what passes between it and the others."""

import json
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from tests.compat.drivers.api import ClientError
from tests.compat.registry.clients.api import Call, Definition, Written

T = TypeVar("T")


class ConfluentPython:
    name: ClassVar[str] = "confluent-python"
    cannot: ClassVar[frozenset[Call]] = frozenset()

    def __init__(self, url: str) -> None:
        self._client = SchemaRegistryClient({"url": url})

    def register(self, subject: str, definition: Definition) -> int:
        return _called(lambda: self._fresh().register_schema(subject, _schema(definition)))

    def lookup(self, subject: str, definition: Definition) -> int:
        found = _called(lambda: self._fresh().lookup_schema(subject, _schema(definition)))
        assert found.schema_id is not None
        return found.schema_id

    def schema(self, subject: str, schema_id: int) -> dict[str, Any]:
        found = _called(lambda: self._fresh().get_schema(schema_id, subject_name=subject))
        references = [each.to_dict() for each in found.references or []]
        return {"schema": found.schema_str, "type": found.schema_type, "references": references}

    def subjects(self) -> list[str]:
        return _called(self._client.get_subjects)

    def versions(self, subject: str) -> list[int]:
        return _called(lambda: self._client.get_versions(subject))

    def compatible(self, subject: str, definition: Definition) -> bool:
        return _called(lambda: self._client.test_compatibility(subject, _schema(definition)))

    def set_level(self, subject: str, level: str) -> str:
        _called(lambda: self._client.set_compatibility(subject_name=subject, level=level))
        return _called(lambda: self._client.get_compatibility(subject_name=subject))

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        return _called(lambda: self._client.delete_subject(subject, permanent=permanent))

    def serialize(self, topic: str, definition: Definition, value: Any, *, header: bool = False) -> Written:
        conf = {"schema.id.serializer": header_schema_id_serializer} if header else {}
        context = SerializationContext(topic, MessageField.VALUE, [])
        serializer: Any
        match definition.type:
            case "AVRO":
                serializer = AvroSerializer(self._fresh(), _schema(definition), conf=conf)
            case "JSON":
                serializer = JSONSerializer(_schema(definition), self._fresh(), conf=conf)
            case _:
                message = _message_class(definition)
                serializer = ProtobufSerializer(message, self._fresh(), conf)
                value = json_format.ParseDict(value, message())
        data = _called(lambda: serializer(value, context))
        headers: Any = context.headers
        return Written(data, headers)

    def deserialize(self, topic: str, definition: Definition, written: Written) -> Any:
        headers: Any = written.headers
        context = SerializationContext(topic, MessageField.VALUE, headers)
        deserializer: Any
        match definition.type:
            case "AVRO":
                deserializer = AvroDeserializer(self._fresh())
            case "JSON":
                deserializer = JSONDeserializer(None, schema_registry_client=self._fresh())
            case _:
                deserializer = ProtobufDeserializer(_message_class(definition), {}, self._fresh())
                return json.loads(json_format.MessageToJson(deserializer(written.data, context)))
        return _called(lambda: deserializer(written.data, context))

    def _fresh(self) -> SchemaRegistryClient:
        self._client.clear_caches()  # type: ignore[no-untyped-call]
        return self._client

    def close(self) -> None:
        self._client.close()


def _called(call: Callable[[], T]) -> T:
    try:
        return call()
    except SchemaRegistryError as refused:
        raise ClientError(str(refused.error_code), str(refused)) from refused


def _schema(definition: Definition) -> Schema:
    references = [SchemaReference(**each) for each in definition.references]
    return Schema(definition.schema, definition.type, references)


def _message_class(definition: Definition) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(definition.descriptors).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(definition.message))
