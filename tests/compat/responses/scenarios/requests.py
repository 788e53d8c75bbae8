"""Short ways to write the requests of the scenarios, and values that several of them use."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Topic, TopicId
from tests.compat.responses.scenario import Ask, Eventually

UNKNOWN_ID = uuid.UUID("5a5a5a5a-0000-4000-8000-00000000beef")
ZERO_ID = uuid.UUID(int=0)
Body = dict[str, Any]

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # kinds of config resources
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3  # what IncrementalAlterConfigs does to a setting


def unknown_topic() -> tuple[object, object]:
    return Topic("missing"), UNKNOWN_ID


def known_topic(short: str = "t") -> tuple[object, object]:
    return Topic(short), TopicId(short)


def produce_to(*topics: tuple[tuple[object, object], Mapping[int, object]], acks: int = -1, **more: object) -> Body:
    """Topics as (name, id) with their partitions' records."""
    return {
        "acks": acks,
        "timeout": 5_000,
        "topic_data": [
            {
                "name": name,
                "topic_id": topic_id,
                "partition_data": [{"index": index, "records": records} for index, records in partitions.items()],
            }
            for (name, topic_id), partitions in topics
        ],
        **more,
    }


def produce(records: object, *, partition: int = 0, topic: str = "t", acks: int = -1, **more: object) -> Body:
    return produce_to((known_topic(topic), {partition: records}), acks=acks, **more)


def fetch_to(*topics: tuple[tuple[object, object], Sequence[Body]], **more: object) -> Body:
    return {
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 10_000_000,
        "topics": [
            {"topic": name, "topic_id": topic_id, "partitions": list(partitions)}
            for (name, topic_id), partitions in topics
        ],
        "forgotten_topics_data": [],
        **more,
    }


def from_offset(offset: int, *, partition: int = 0, **more: object) -> Body:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1_000_000, **more}


def fetch(offset: int = 0, *, partition: int = 0, topic: str = "t", at: Body | None = None, **more: object) -> Body:
    return fetch_to((known_topic(topic), [from_offset(offset, partition=partition, **(at or {}))]), **more)


def list_offsets(timestamp: int, *, topic: object = None, partition: int = 0, **more: object) -> Body:
    wanted = {"partition_index": partition, "timestamp": timestamp, **more}
    return {"replica_id": -1, "topics": [{"name": topic or Topic("t"), "partitions": [wanted]}]}


def setting(name: str, value: str | None, operation: int | None = None) -> Body:
    return (
        {"name": name, "value": value}
        if operation is None
        else {
            "name": name,
            "value": value,
            "config_operation": operation,
        }
    )


def resource(kind: int, name: object, *configs: Body) -> Body:
    return {"resource_type": kind, "resource_name": name, "configs": list(configs)}


def described(name: object, *keys: str, kind: int = TOPIC) -> Body:
    return {"resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}]}


def see_settings(*keys: str, topic: str = "t") -> Ask:
    return Ask(Api.DESCRIBE_CONFIGS, {**described(Topic(topic), *keys), "include_synonyms": True}, version=4)


def until_setting(name: str, value: str, *, resource_name: object = None, kind: int = TOPIC) -> Eventually:
    body = described(resource_name or Topic("t"), name, kind=kind)
    return Eventually(Api.DESCRIBE_CONFIGS, body, "results.0.configs.0.value", value)


def see_topic(topic: str = "t") -> Ask:
    return Ask(Api.METADATA, {"topics": [{"name": Topic(topic)}], "allow_auto_topic_creation": False}, version=12)


def until_topic(topic: str = "t", *, partitions: int) -> Eventually:
    body = {"topics": [{"name": Topic(topic)}], "allow_auto_topic_creation": False}
    return Eventually(Api.METADATA, body, "topics.0.partitions.length", partitions)


def until_gone(topic: str = "t") -> Eventually:
    body = {"topics": [{"name": Topic(topic)}], "allow_auto_topic_creation": False}
    return Eventually(Api.METADATA, body, "topics.0.error_code", "UNKNOWN_TOPIC_OR_PARTITION")


def new_producer(name: str = "p") -> Ask:
    body = {"transactional_id": None, "transaction_timeout": 60_000}
    return Ask(Api.INIT_PRODUCER_ID, body, version=4, learn={name: "producer_id"})
