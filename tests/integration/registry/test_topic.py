"""The topic `_schemas`: created, checked, compacted, truncated, deleted and recreated under a running registry."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.integration.registry.instances import Registry, record_schema, wait_until
from tests.peers.kaspar import KasparProcess


@pytest.fixture
def admin(broker: KasparProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(admin: AdminClient, topic: str, *, partitions: int = 1, policy: str = "compact", **more: str) -> None:
    config = {"cleanup.policy": policy, **{name.replace("_", "."): value for name, value in more.items()}}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
    admin.create_topics([new])[topic].result(30)


def set_policy(admin: AdminClient, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def delete(admin: AdminClient, topic: str) -> None:
    admin.delete_topics([topic])[topic].result(30)


def records_of(broker: KasparProcess, topic: str, isolation: str) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # how long a broker holds back the response that shows the end
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            break
        found.append((message.key(), message.value()))
    consumer.close()
    return found


def refusal(registry: Registry) -> str:
    """The sentence with which it ends."""
    assert registry.launch().process.wait(30) == 1
    return registry.log_text().splitlines()[-1]


def test_topic_is_created_compacted_with_one_partition(
    broker: KasparProcess, admin: AdminClient, settings: dict[str, str], tmp_path: Path
) -> None:
    topic = settings["kafkastore.topic"]
    with Registry(tmp_path, broker.bootstrap, "registry", settings):
        described = admin.list_topics(topic).topics[topic]
        assert len(described.partitions) == 1
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        assert admin.describe_configs([resource])[resource].result(30)["cleanup.policy"].value == "compact"


def test_topic_that_is_not_compacted_is_refused(
    broker: KasparProcess, admin: AdminClient, settings: dict[str, str], tmp_path: Path
) -> None:
    create(admin, settings["kafkastore.topic"], policy="delete")
    sentence = refusal(Registry(tmp_path, broker.bootstrap, "registry", settings))
    assert "Expected cleanup.policy to be 'compact' but it is delete" in sentence


def test_topic_with_two_partitions_is_refused(
    broker: KasparProcess, admin: AdminClient, settings: dict[str, str], tmp_path: Path
) -> None:
    create(admin, settings["kafkastore.topic"], partitions=2)
    sentence = refusal(Registry(tmp_path, broker.bootstrap, "registry", settings))
    assert "should have only 1 partition but has 2" in sentence


def test_written_topic_is_readable_without_transactions(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    """As Confluent's registry reads it: read_uncommitted, and every record is a key and a value in JSON."""
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        registry.register("orders", record_schema("Order"))
        registry.http.put("/config/orders", json={"compatibility": "FULL"})
    records = records_of(broker, settings["kafkastore.topic"], "read_uncommitted")
    assert records == records_of(broker, settings["kafkastore.topic"], "read_committed")
    keys = [json.loads(key or b"") for key, _ in records]
    assert keys == [
        {"keytype": "NOOP", "magic": 0},
        {"keytype": "SCHEMA", "subject": "orders", "version": 1, "magic": 1},
        {"keytype": "CONFIG", "subject": "orders", "magic": 0},
    ]
    assert json.loads(records[1][1] or b"")["schema"] == record_schema("Order")


def test_records_of_aborted_transactions_are_never_served(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    topic = settings["kafkastore.topic"]
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        first = registry.register("orders", record_schema("Order"))
        stranger = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"stranger-{topic}"})
        stranger.init_transactions(30)
        stranger.begin_transaction()
        stranger.produce(topic, key=_schema_key("ghost"), value=_schema_value("ghost", first + 1), partition=0)
        stranger.flush(30)
        stranger.abort_transaction(30)
        assert registry.register("payments", record_schema("Payment")) == first + 1
        assert registry.subjects() == ["orders", "payments"]
        assert (_schema_key("ghost"), _schema_value("ghost", first + 1)) in records_of(
            broker, topic, "read_uncommitted"
        )
    with Registry(tmp_path, broker.bootstrap, "next", settings) as registry:
        assert registry.subjects() == ["orders", "payments"]


def test_what_a_dead_leader_left_behind_is_written_over(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    """A reader without regard to transactions sees the same as one with regard to them."""
    topic = settings["kafkastore.topic"]
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        first = registry.register("orders", record_schema("Order"))
        assert registry.stop() == 0
    transactional_id = f"{settings['schema.registry.group.id']}-{topic}"
    dead = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id})
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(topic, key=_schema_key("ghost"), value=_schema_value("ghost", first + 1), partition=0)
    dead.produce(topic, key=_schema_key("orders"), value=_schema_value("orders", first + 2), partition=0)
    dead.flush(30)  # and it never ends its transaction
    with Registry(tmp_path, broker.bootstrap, "next", settings) as registry:
        assert registry.register("payments", record_schema("Payment")) == first + 1
        assert registry.subjects() == ["orders", "payments"]
    assert _last_by_key(broker, topic, "read_uncommitted") == _last_by_key(broker, topic, "read_committed")


def test_recreated_topic_replaces_everything_and_is_written_to(
    broker: KasparProcess, admin: AdminClient, settings: dict[str, str], tmp_path: Path
) -> None:
    topic = settings["kafkastore.topic"]
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        registry.register("orders", record_schema("Order"))
        delete(admin, topic)
        wait_until(lambda: registry.http.get("/subjects").status_code == 500, "nothing is served")
        body = registry.http.get("/subjects/orders/versions").json()
        assert body["error_code"] == 50001
        assert f"the topic {topic} was deleted" in body["message"]
        create(admin, topic)
        wait_until(lambda: registry.http.get("/subjects").status_code == 200, "the new topic is served")
        assert registry.subjects() == []
        wait_until(registry.leads, "the registry leads again")
        assert registry.register("payments", record_schema("Payment")) == 1
        assert registry.subjects() == ["payments"]
        assert f"the topic {topic} was deleted" in registry.log_text()


def test_deleted_records_are_no_longer_served(
    broker: KasparProcess, admin: AdminClient, settings: dict[str, str], tmp_path: Path
) -> None:
    topic = settings["kafkastore.topic"]
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        registry.register("orders", record_schema("Order"))
        registry.register("payments", record_schema("Payment"))
        end = TopicPartition(topic, 0, _offset_of(broker, topic, b'"payments"'))
        set_policy(admin, topic, "compact,delete")  # brokers delete no records of a topic that is only compacted
        admin.delete_records([end])[end].result(30)
        registry.http.put("/config", json={"compatibility": "NONE"})  # wakes the reader
        wait_until(lambda: registry.http.get("/subjects").json() == ["payments"], "what is left is served")
        assert "were deleted" in registry.log_text()
        wait_until(registry.leads, "the registry leads again")
        assert registry.register("refunds", record_schema("Refund")) == 3


def test_compacted_topic_is_the_same_to_a_registry(
    broker: KasparProcess, admin: AdminClient, settings: dict[str, str], tmp_path: Path
) -> None:
    topic = settings["kafkastore.topic"]
    create(
        admin,
        topic,
        segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.0",
        max_compaction_lag_ms="1",
        min_compaction_lag_ms="0",
        delete_retention_ms="0",
        segment_ms="100",
    )
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        for level in ("FULL", "NONE", "FORWARD", "BACKWARD") * 10:
            registry.http.put("/config/orders", json={"compatibility": level})
        registry.register("orders", record_schema("Order"))
        registry.register("dropped", record_schema("Dropped"))
        for permanent in ("false", "true"):
            assert registry.http.delete(f"/subjects/dropped?permanent={permanent}").status_code == 200

        def is_compacted() -> bool:
            time.sleep(0.1)  # so that the write rolls the segment, by segment.ms
            registry.http.put("/config/other", json={"compatibility": "NONE"})
            keys = [key for key, _ in records_of(broker, topic, "read_committed")]
            return keys.count(b'{"keytype":"CONFIG","subject":"orders","magic":0}') == 1

        wait_until(is_compacted, "the topic is compacted", 60)
        before = (registry.get("/schemas"), registry.get("/config/orders"), registry.subjects())
        with Registry(tmp_path, broker.bootstrap, "next", settings) as other:
            assert (other.get("/schemas"), other.get("/config/orders"), other.subjects()) == before
            assert "read again" not in registry.log_text()
            registry.kill()
            wait_until(other.leads, "the other leads")
            assert other.register("refunds", record_schema("Refund")) == 3  # 2 was that of the dropped schema


def _last_by_key(broker: KasparProcess, topic: str, isolation: str) -> dict[bytes | None, bytes | None]:
    """What a table of the topic has; a tombstone removes its key."""
    return {key: value for key, value in dict(records_of(broker, topic, isolation)).items() if value is not None}


def _schema_key(subject: str) -> bytes:
    key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
    return json.dumps(key, separators=(",", ":")).encode()


def _schema_value(subject: str, schema_id: int) -> bytes:
    value = {"subject": subject, "version": 1, "id": schema_id, "schema": '"string"', "deleted": False}
    return json.dumps(value).encode()


def _offset_of(broker: KasparProcess, topic: str, part: bytes) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "finder"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(30)
        assert message is not None
        if part in (message.key() or b""):
            consumer.close()
            offset = message.offset()
            assert offset is not None
            return offset
