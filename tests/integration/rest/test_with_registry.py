"""Records with schemas between the REST proxy and Confluent's serializers, by the schema registry."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kaspar.testing import Broker
from tests.integration.rest.api import Api
from tests.integration.rest.test_produce import AVRO, JSON_SCHEMA, records_of

UNION = json.dumps(
    {
        "type": "record",
        "name": "Note",
        "fields": [{"name": "text", "type": ["null", "string"]}, {"name": "raw", "type": "bytes"}],
    }
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(registry=True, rest=True) as broker:
        yield broker


@pytest.fixture
def api(broker: Broker) -> Iterator[Api]:
    with httpx.Client(base_url=broker.rest_url, timeout=30) as client:
        api = Api(client)
        yield api
        api.delete_instances()


@pytest.fixture
def registry(broker: Broker) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": broker.registry_url}) as client:
        yield client


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def written(broker: Broker, topic: str) -> bytes:
    (record,) = records_of(broker.bootstrap_servers, topic, 1)
    value: bytes = record.value()
    return value


def write(broker: Broker, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


def read(api: Api, topic: str, name: str) -> Any:
    instance = api.instance(f"readers-of-{topic}", name)
    instance.assign((topic, 0))
    return instance.read(1)[0]["value"]


def test_confluents_deserializers_read_what_the_proxy_writes(
    broker: Broker, api: Api, registry: SchemaRegistryClient
) -> None:
    body = {"value_schema": UNION, "records": [{"value": {"text": {"string": "é"}, "raw": "\u00ff"}}]}
    assert api.produce("avro-out", body, "avro").status_code == 200
    found = AvroDeserializer(registry)(written(broker, "avro-out"), value_of("avro-out"))
    assert found == {"text": "é", "raw": b"\xff"}
    body = {"value_schema": JSON_SCHEMA, "records": [{"value": {"amount": 3}}]}
    assert api.produce("json-out", body, "jsonschema").status_code == 200
    assert JSONDeserializer(JSON_SCHEMA)(written(broker, "json-out"), value_of("json-out")) == {"amount": 3}


def test_the_proxy_reads_what_confluents_serializers_write(
    broker: Broker, api: Api, registry: SchemaRegistryClient
) -> None:
    serialized = AvroSerializer(registry, UNION)({"text": "é", "raw": b"\xff"}, value_of("avro-in"))
    assert serialized is not None
    write(broker, "avro-in", serialized)
    assert read(api, "avro-in", "avro") == {"text": {"string": "é"}, "raw": "\u00ff"}
    titled = json.dumps({**json.loads(JSON_SCHEMA), "title": "Order"})
    serialized = JSONSerializer(titled, registry)({"amount": 3}, value_of("json-in"))
    assert serialized is not None
    write(broker, "json-in", serialized)
    assert read(api, "json-in", "jsonschema") == {"amount": 3}


def test_an_incompatible_schema_is_refused_with_the_registrys_reason(api: Api) -> None:
    assert api.produce("evolving", {"value_schema": AVRO, "records": [{"value": {"amount": 1}}]}, "avro").is_success
    other = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "price", "type": "int"}]})
    refused = api.produce("evolving", {"value_schema": other, "records": [{"value": {"price": 1}}]}, "avro")
    assert (refused.status_code, refused.json()["error_code"]) == (408, 40801)
    assert refused.json()["message"].startswith(
        "Error when registering schema. format = AVRO, subject = evolving-value"
    )
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.json()["message"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("avro", '{"type":"no"}'), ("jsonschema", '{"type": 5}'), ("protobuf", "message {"), ("avro", "[")],
)
def test_a_text_that_is_no_schema_is_refused(api: Api, name: str, text: str) -> None:
    refused = api.produce("invalid", {"value_schema": text, "records": [{"value": {}}]}, name)
    assert (refused.status_code, refused.json()["error_code"]) == (422, 42205), refused.text
