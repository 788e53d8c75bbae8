"""Producing through version 2: what arrives in the topic, and what responses say of each record."""

import base64
import json
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.rest.api import Api
from tests.integration.rest.conftest import CreateTopic, NewTopic
from tests.integration.rest.serving import RunningRest
from tests.peers.process import BrokerProcess

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "int"}]})
JSON_SCHEMA = json.dumps({"type": "object", "properties": {"amount": {"type": "integer"}}})
PROTOBUF = 'syntax = "proto3"; message Order { int32 amount = 1; }'
SCHEMAS = {"avro": AVRO, "jsonschema": JSON_SCHEMA, "protobuf": PROTOBUF}


def delivered(partition: int, offset: int) -> dict[str, Any]:
    return {"partition": partition, "offset": offset, "error_code": None, "error": None}


def records_of(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        return consumer.consume(count, timeout=20)
    finally:
        consumer.close()


def test_binary_records_are_the_bytes_behind_base64(api: Api, new_topic: NewTopic, rest_broker: BrokerProcess) -> None:
    topic = new_topic()
    body = {"records": [{"key": "a2V5", "value": "AP//"}, {"key": "a2V5", "value": None}, {"value": ""}]}
    response = api.produce(topic, body)
    assert response.json() == {
        "offsets": [delivered(0, 0), delivered(0, 1), delivered(0, 2)],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    found = [(each.key(), each.value()) for each in records_of(rest_broker.bootstrap, topic, 3)]
    assert found == [(b"key", b"\x00\xff\xff"), (b"key", None), (None, b"")]


def test_json_records_keep_numbers_and_text_as_they_were_written(
    api: Api, new_topic: NewTopic, rest_broker: BrokerProcess
) -> None:
    topic = new_topic()
    body = (
        '{"records": [{"value": {"n" : 123456789012345678901234567890, "f": 1.10, "u": "é\\u00e9"}}, {"value": null}]}'
    )
    assert api.produce(topic, body.encode(), "json").json()["offsets"] == [delivered(0, 0), delivered(0, 1)]
    first, second = records_of(rest_broker.bootstrap, topic, 2)
    assert first.value().decode() == '{"n":123456789012345678901234567890,"f":1.10,"u":"é\\u00e9"}'
    assert second.value() is None


def test_records_go_to_the_partition_that_they_or_the_path_name(api: Api, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    body = {"records": [{"value": "eA==", "partition": 2}, {"value": "eA==", "partition": "1"}]}
    assert [each["partition"] for each in api.produce(topic, body).json()["offsets"]] == [2, 1]
    body = {"records": [{"value": "eA=="}, {"value": "eA=="}]}
    assert [each["partition"] for each in api.produce(topic, body, partition=1).json()["offsets"]] == [1, 1]


def test_equal_keys_go_to_the_partition_that_a_java_producer_chooses(api: Api, new_topic: NewTopic) -> None:
    """By murmur2: `a` and `b` to partition 2 and 1 of three, as Kafka's own producer has it."""
    topic = new_topic(partitions=3)
    keys = [base64.b64encode(key).decode() for key in (b"a", b"b", b"a")]
    partitions = [
        each["partition"] for each in api.produce(topic, {"records": [{"key": key} for key in keys]}).json()["offsets"]
    ]
    assert partitions[0] == partitions[2]
    assert partitions == [_murmur2_partition(key, 3) for key in (b"a", b"b", b"a")]


def test_records_of_a_request_keep_their_order(api: Api, new_topic: NewTopic, rest_broker: BrokerProcess) -> None:
    topic = new_topic()
    body = {"records": [{"value": number} for number in range(1500)]}
    offsets = api.produce(topic, body, "json").json()["offsets"]
    assert [each["offset"] for each in offsets] == list(range(1500))
    assert [int(each.value()) for each in records_of(rest_broker.bootstrap, topic, 1500)] == list(range(1500))


def test_a_refused_record_does_not_fail_its_neighbours(api: Api, new_topic: NewTopic) -> None:
    topic = new_topic()
    large = base64.b64encode(bytes(1_100_000)).decode()
    body = {"records": [{"value": "eA=="}, {"value": large}, {"value": "***"}, {"partition": 9}, {"value": "eA=="}]}
    response = api.produce(topic, body)
    assert response.status_code == 200
    first, too_large, not_base64, no_partition, last = response.json()["offsets"]
    assert (first, last) == (delivered(0, 0), delivered(0, 1))
    assert too_large["error_code"] == not_base64["error_code"] == 1
    assert too_large["error"] == (
        "The message is 1100082 bytes when serialized which is larger than 1048576, "
        "which is the value of the max.request.size configuration."
    )
    assert not_base64["error"] == 'data="***" is not a valid base64 string.'
    assert no_partition == {
        "partition": None,
        "offset": None,
        "error_code": 2,
        "error": "This server does not host this topic-partition.",
    }


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_records_are_written_by_a_schema_that_comes_with_the_request_or_by_its_id(
    api: Api, new_topic: NewTopic, rest_broker: BrokerProcess, name: str
) -> None:
    topic = new_topic()
    records = [{"key": {"amount": 1}, "value": {"amount": 2}}, {"key": {"amount": 3}, "value": None}]
    by_text = api.produce(topic, {"key_schema": SCHEMAS[name], "value_schema": SCHEMAS[name], "records": records}, name)
    assert by_text.json()["offsets"] == [delivered(0, 0), delivered(0, 1)], by_text.text
    ids = {each: by_text.json()[each] for each in ("key_schema_id", "value_schema_id")}
    by_id = api.produce(topic, {**ids, "records": records}, name)
    assert by_id.json() == {**ids, "offsets": [delivered(0, 2), delivered(0, 3)]}
    first, second, *_ = records_of(rest_broker.bootstrap, topic, 4)
    assert first.key()[:5] == first.value()[:5] == b"\0" + ids["value_schema_id"].to_bytes(4, "big")
    assert second.value() is None


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_value_that_does_not_fit_its_schema_is_refused_by_itself(api: Api, new_topic: NewTopic, name: str) -> None:
    topic = new_topic()
    body = {"value_schema": SCHEMAS[name], "records": [{"value": {"amount": 1}}, {"value": {"amount": "much"}}]}
    first, second = api.produce(topic, body, name).json()["offsets"]
    assert first == delivered(0, 0)
    assert second["error_code"] == 1
    assert second["error"].startswith("Conversion of JSON to Object failed: ")
    del body["records"][0]  # type: ignore[attr-defined]
    refused = api.produce(topic, body, name)
    assert (refused.status_code, refused.json()["error_code"]) == (422, 42203)


@pytest.mark.parametrize(("acks", "offset"), [("0", -1), ("1", 0), ("all", 0)])
def test_a_response_waits_for_the_acknowledgements_that_are_set(
    rest_broker: BrokerProcess, new_topic: NewTopic, acks: str, offset: int
) -> None:
    topic = new_topic()
    settings = {"bootstrap.servers": rest_broker.bootstrap, "producer.acks": acks}
    with RunningRest(settings) as rest, httpx.Client(base_url=rest.url, timeout=30) as client:
        response = Api(client).produce(topic, {"records": [{"value": "eA=="}]})
        assert response.json()["offsets"] == [delivered(0, offset)]
    assert [each.value() for each in records_of(rest_broker.bootstrap, topic, 1)] == [b"x"]


def test_an_unknown_topic_is_reported_at_once_where_brokers_create_none(api: Api) -> None:
    refused = api.produce("never-created", {"records": [{"value": "eA=="}]})
    assert (refused.status_code, refused.json()) == (404, {"error_code": 40401, "message": "Topic not found."})
    assert "never-created" not in api.client.get("/topics").json()


def test_a_topic_that_is_created_later_is_found(api: Api, create_topic: CreateTopic) -> None:
    assert api.produce("later", {"records": [{"value": "eA=="}]}).status_code == 404
    create_topic("later", 1)
    assert api.produce("later", {"records": [{"value": "eA=="}]}).status_code == 200


def _murmur2_partition(key: bytes, partitions: int) -> int:
    """Kafka's BuiltInPartitioner, for keys shorter than four bytes."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    for index in reversed(range(len(key))):
        h ^= key[index] << (8 * index)
    h = (h * m) & mask
    h ^= h >> 13
    h = (h * m) & mask
    h ^= h >> 15
    return (h & 0x7FFFFFFF) % partitions
