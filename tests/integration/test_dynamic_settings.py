"""Settings changed while the broker runs take effect, and outlive a restart."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import EARLIEST, RawClient

TOPIC = "orders"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1


def _alter(client: RawClient, resource_type: int, name: str, setting: str, value: str | None) -> int:
    """Set, or with None back to the default; the error code."""
    change = AlterableConfig(name=setting, config_operation=SET if value is not None else DELETE, value=value)
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return client.call(request, IncrementalAlterConfigsResponse).responses[0].error_code


@pytest.fixture
def broker(tmp_path: Path) -> ObservedBroker:
    return ObservedBroker(tmp_path, overrides={"log.retention.check.interval.ms": "100"})


def test_max_message_bytes_of_a_topic(broker: ObservedBroker) -> None:
    large = [bytes(5000)]
    with broker:
        with broker.client() as client:
            assert client.create_topic(TOPIC) == 0
            assert client.produce(TOPIC, large).error_code == 0
            assert _alter(client, TOPIC_RESOURCE, TOPIC, "max.message.bytes", "1000") == 0
            assert client.produce(TOPIC, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
        broker.restart()
        with broker.client() as client:
            assert client.produce(TOPIC, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
            assert _alter(client, TOPIC_RESOURCE, TOPIC, "max.message.bytes", None) == 0
            assert client.produce(TOPIC, large).error_code == 0


def test_retention_of_a_topic(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        assert client.create_topic(TOPIC, configs={"internal.segment.bytes": "10000"}) == 0
        for _ in range(10):
            assert client.produce(TOPIC, [bytes(6000)]).error_code == 0
        assert client.offset_at(TOPIC, EARLIEST) == (0, 0)
        assert _alter(client, TOPIC_RESOURCE, TOPIC, "retention.bytes", "20000") == 0
        wait_until(lambda: client.offset_at(TOPIC, EARLIEST)[1] >= 6, "old segments go")
        assert client.fetch(TOPIC, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert len(client.read_values(TOPIC, offset=9)) == 1
        assert _alter(client, TOPIC_RESOURCE, TOPIC, "retention.ms", "1") == 0
        wait_until(lambda: client.offset_at(TOPIC, EARLIEST)[1] == 10, "everything is too old")
        assert client.produce(TOPIC, [b"x"]).base_offset == 10, "offsets go on"


def test_group_commit_switched_on_and_off(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        count = "kafka_log_logflushstats_logflushrateandtimems_count"
        assert client.produce(TOPIC, [b"one"]).error_code == 0
        before = broker.metrics()[count]
        assert _alter(client, TOPIC_RESOURCE, TOPIC, "flush.messages", "1") == 0
        for acks in (1, -1):
            assert client.produce(TOPIC, [b"two"], acks=acks).error_code == 0
        wait_until(lambda: broker.metrics()[count] >= before + 2, "both were synced")
        assert _alter(client, TOPIC_RESOURCE, TOPIC, "flush.messages", None) == 0
        assert client.produce(TOPIC, [b"three"]).error_code == 0
        assert client.read_values(TOPIC) == [b"one", b"two", b"two", b"three"]


def test_flush_after_some_messages_and_after_some_time(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        count = "kafka_log_logflushstats_logflushrateandtimems_count"
        assert client.create_topic("by-count", configs={"flush.messages": "5"}) == 0
        for _ in range(4):
            client.produce("by-count", [b"x"])
        assert broker.metrics()[count] == 0
        client.produce("by-count", [b"x"])
        wait_until(lambda: broker.metrics()[count] == 1, "the fifth message has all synced")
        assert client.create_topic("by-time", configs={"flush.ms": "50"}) == 0
        client.produce("by-time", [b"x"])
        wait_until(lambda: broker.metrics()[count] == 2, "a sync comes with time")


@pytest.mark.parametrize("name", ["1", ""], ids=["of this broker", "of every broker"])
def test_settings_of_the_broker(broker: ObservedBroker, name: str) -> None:
    large = [bytes(5000)]
    with broker:
        with broker.client() as client:
            assert client.create_topic(TOPIC) == 0
            assert _alter(client, BROKER_RESOURCE, name, "message.max.bytes", "1000") == 0
            assert client.produce(TOPIC, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
        broker.restart()
        with broker.client() as client:
            assert client.produce(TOPIC, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
            assert _alter(client, BROKER_RESOURCE, name, "message.max.bytes", None) == 0
            assert client.produce(TOPIC, large).error_code == 0


def test_connection_limit_changes_while_running(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        assert _alter(client, BROKER_RESOURCE, "", "max.connections.per.ip", "2") == 0
        with broker.client() as second, broker.client() as third:
            second.topics()
            assert third.is_closed_by_broker()
        assert _alter(client, BROKER_RESOURCE, "", "max.connections.per.ip", None) == 0
        with broker.client() as second, broker.client() as third:
            second.topics()
            third.topics()


def test_what_cannot_change_while_running_is_refused(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        assert _alter(client, BROKER_RESOURCE, "1", "log.dirs", "/elsewhere") == ErrorCode.INVALID_REQUEST
        assert _alter(client, TOPIC_RESOURCE, "nobody", "retention.ms", "1") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.create_topic(TOPIC) == 0
        assert _alter(client, TOPIC_RESOURCE, TOPIC, "retention.ms", "soon") == ErrorCode.INVALID_CONFIG


def test_defaults_of_new_topics(tmp_path: Path) -> None:
    settings = {"num.partitions": "4", "auto.create.topics.enable": "true", "log.retention.ms": "77777777"}
    with ObservedBroker(tmp_path, overrides=settings) as broker, broker.client() as client:
        assert client.create_topic("made", partitions=-1) == 0
        assert len(client.metadata("made").topics[0].partitions) == 4
