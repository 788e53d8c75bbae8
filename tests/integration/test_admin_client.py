"""The administrator's session with our own broker: what it describes, and what it changes."""

from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.log_dirs import Replica, describe_log_dirs, describe_replica_log_dirs
from kaspar.client.admin.records import delete_records
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics, list_topics
from kaspar.client.cluster import EARLIEST_TIMESTAMP
from kaspar.client.offsets import list_offsets
from tests.peers.kaspar import KasparProcess
from tests.peers.raw_client import RawClient

TOPIC = ConfigResource(ResourceType.TOPIC, "orders")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("broker")) as running:
        with RawClient(running.port) as client:
            assert client.create_topic("orders", partitions=2) == 0
            client.produce("orders", [b"one"])
        yield running


@pytest.fixture
def admin(broker: KasparProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as session:
        yield session


def test_brokers_and_topics_are_described(admin: Admin, broker: KasparProcess) -> None:
    (node,) = describe_cluster(admin).nodes
    assert (node.host, node.port) == (broker.host, broker.port)
    assert list_topics(admin) == ["orders"]
    found = describe_topics(admin, ["orders", "nowhere"])
    orders, nowhere = found["orders"], found["nowhere"]
    assert isinstance(orders, TopicDescription)
    assert [(each.partition, each.leader, each.replicas) for each in orders.partitions] == [
        (number, node.node_id, (node.node_id,)) for number in (0, 1)
    ]
    assert isinstance(nowhere, Refused)
    assert nowhere.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_settings_are_changed_and_described(admin: Admin) -> None:
    (node,) = describe_cluster(admin).nodes
    own = ConfigResource(ResourceType.BROKER, str(node.node_id))
    changes = {
        TOPIC: [ConfigChange("retention.ms", ConfigOperation.SET, "12345")],
        own: [ConfigChange("log.cleaner.threads", ConfigOperation.SET, "2")],
        ConfigResource(ResourceType.TOPIC, "nowhere"): [ConfigChange("retention.ms", ConfigOperation.DELETE)],
    }
    refused = incremental_alter_configs(admin, changes)
    assert [each.name for each in refused] == ["nowhere"]
    described = describe_configs(admin, [TOPIC, own])
    values = {resource: configs for resource, configs in described.items() if isinstance(configs, dict)}
    assert values[TOPIC]["retention.ms"].value == "12345"
    assert values[own]["log.cleaner.threads"].value == "2"


def test_log_directories_are_described(admin: Admin, broker: KasparProcess) -> None:
    (node,) = describe_cluster(admin).nodes
    (directory,) = describe_log_dirs(admin, node.node_id)
    assert directory.path == str(broker.data_dir)
    assert directory.replicas[TopicPartition("orders", 0)].partition_size > 0
    there = Replica(node.node_id, TopicPartition("orders", 1))
    missing = Replica(node.node_id, TopicPartition("orders", 9))
    found = describe_replica_log_dirs(admin, [there, missing])
    assert (found[there].current, found[there].future) == (str(broker.data_dir), None)
    assert found[missing].current is None


def test_the_first_records_are_deleted(admin: Admin, broker: KasparProcess) -> None:
    with RawClient(broker.port) as client:
        assert client.create_topic("events", partitions=1) == 0
        client.produce("events", [b"one", b"two", b"three"])
    first = TopicPartition("events", 0)
    assert delete_records(admin, {first: 2}) == {first: 2}
    assert list_offsets(admin.client, {first: EARLIEST_TIMESTAMP})[first].offset == 2
    refused = delete_records(admin, {first: 9})[first]
    assert isinstance(refused, Refused)
    assert refused.code is ErrorCode.OFFSET_OUT_OF_RANGE
