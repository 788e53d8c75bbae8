"""Scenarios of writes and reads, right and wrong."""

import contextlib
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode
from kaspar.config.alterations import AlterOperation
from kaspar.controller.events import ResourceType
from kaspar.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kaspar.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kaspar.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.records import Record
from tests.integration.metrics.stage import Stage, batch_of, now_ms
from tests.peers.raw_client import RawClient


@contextlib.contextmanager
def a_start(stage: Stage) -> Iterator[None]:
    """What there is from the start."""
    yield


@contextlib.contextmanager
def a_write_and_a_read(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        assert len(client.fetch(topic, 0).records) == 1
        yield


@contextlib.contextmanager
def a_batch_that_is_too_large(stage: Stage) -> Iterator[None]:
    with stage.topic({"max.message.bytes": "100"}) as (client, topic):
        response = client.produce_batch(topic, batch_of(Record(now_ms(), b"key", bytes(200))))
        assert response.error_code == ErrorCode.MESSAGE_TOO_LARGE
        yield


@contextlib.contextmanager
def a_record_without_a_key(stage: Stage) -> Iterator[None]:
    with stage.topic({"cleanup.policy": "compact"}) as (client, topic):
        assert client.produce(topic, [b"value"]).error_code == ErrorCode.INVALID_RECORD
        yield


@contextlib.contextmanager
def a_wrong_checksum(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        batch = bytearray(batch_of())
        batch[-1] ^= 1
        assert client.produce_batch(topic, bytes(batch)).error_code == ErrorCode.CORRUPT_MESSAGE
        yield


@contextlib.contextmanager
def a_producer_without_a_sequence(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        assert client.produce(topic, [b"value"], producer_id=4).error_code == ErrorCode.INVALID_RECORD
        yield


@contextlib.contextmanager
def a_batch_to_compress(stage: Stage) -> Iterator[None]:
    with stage.topic({"compression.type": "gzip"}) as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        yield


@contextlib.contextmanager
def a_read_with_a_negative_limit(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        assert client.fetch_bytes(topic, 0, max_bytes=-1).error_code != 0
        yield


@contextlib.contextmanager
def a_write_that_is_synced(stage: Stage) -> Iterator[None]:
    with stage.topic({"flush.messages": "1"}) as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        yield


@contextlib.contextmanager
def deleted_records(stage: Stage) -> Iterator[None]:
    with stage.topic({"internal.segment.bytes": "1000"}) as (client, topic):
        for _ in range(3):
            assert client.produce_batch(topic, batch_of(Record(now_ms(), b"key", bytes(600)))).error_code == 0
        until = DeleteRecordsPartition(partition_index=0, offset=1)
        client.ask(
            DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(until,)),), timeout_ms=30_000)
        )
        yield


@contextlib.contextmanager
def a_log_with_a_limit(stage: Stage) -> Iterator[None]:
    with stage.topic({"retention.bytes": "1000"}) as (client, topic):
        assert client.produce_batch(topic, batch_of(Record(now_ms(), b"key", bytes(600)))).error_code == 0
        yield


@contextlib.contextmanager
def a_replica_that_moves(stage: Stage) -> Iterator[None]:
    """To another log directory, so slowly that it is seen."""
    rate = "replica.alter.log.dirs.io.max.bytes.per.second"
    with stage.topic() as (client, topic):
        for _ in range(3):
            assert client.produce_batch(topic, batch_of(Record(now_ms(), b"key", bytes(900_000)))).error_code == 0
        _set_broker_setting(client, rate, "1000")
        directories = client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
        target = next(each.log_dir for each in directories if topic not in {found.name for found in each.topics})
        wanted = AlterReplicaLogDir(path=target, topics=(AlterReplicaLogDirTopic(name=topic, partitions=(0,)),))
        (result,) = client.call(AlterReplicaLogDirsRequest(dirs=(wanted,)), AlterReplicaLogDirsResponse).results
        assert result.partitions[0].error_code == ErrorCode.NONE
        yield
        _set_broker_setting(client, rate, None)


def _set_broker_setting(client: RawClient, name: str, value: str | None) -> None:
    operation = AlterOperation.DELETE if value is None else AlterOperation.SET
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name="1", configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (response,) = client.call(request, IncrementalAlterConfigsResponse).responses
    assert response.error_code == ErrorCode.NONE
