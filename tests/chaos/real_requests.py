"""Ordinary requests of every served API, at every version of it, as frames: what the mutations begin with."""

import dataclasses
import uuid

from kaspar.broker.telemetry.subscriptions import ClientAttributes, Subscriptions
from kaspar.broker.wiring import SERVED
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kaspar.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest
from kaspar.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kaspar.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kaspar.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kaspar.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from kaspar.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kaspar.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kaspar.protocol.messages.incremental_alter_configs import AlterableConfig as ChangedConfig
from kaspar.protocol.messages.incremental_alter_configs import AlterConfigsResource as ChangedResource
from kaspar.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest
from kaspar.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kaspar.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kaspar.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kaspar.protocol.messages.push_telemetry import PushTelemetryRequest
from kaspar.protocol.schema import Message
from kaspar.records import Codec, Record, build_batch
from tests.peers.otlp import gauge, histogram, metrics_data
from tests.peers.raw_client import request_frame

_TOPIC_RESOURCE = 2
_PUSHER = uuid.UUID(int=714)
_RECORDS = [Record(1_700_000_000_000 + number, b"key", b"value " * 5, (("h", b"1"),)) for number in range(4)]


def real_requests(topic: str, topic_id: uuid.UUID) -> list[bytes]:
    """Frames with their lengths, each of which gets a response: some to `topic`, some to topics of their own."""
    return [
        request_frame(_fit(request, version), version)
        for request in _requests(topic, topic_id)
        for version in _versions(request)
    ]


def _versions(request: Message) -> range:
    api = SERVED[ApiKey(request.SCHEMA.api_key or 0)]
    return range(api.first_version, api.last_version + 1)


def _fit(request: Message, version: int) -> Message:
    """What one version says by id, another says by name."""
    if isinstance(request, DeleteTopicsRequest) and version < 6:
        return dataclasses.replace(request, topics=(), topic_names=("doomed",))
    return request


def _requests(topic: str, topic_id: uuid.UUID) -> list[Message]:
    produces: list[Message] = [
        ProduceRequest(
            acks=acks,
            timeout_ms=1000,
            topic_data=(
                TopicProduceData(
                    name=topic,
                    topic_id=topic_id,
                    partition_data=(
                        PartitionProduceData(index=0, records=bytes(build_batch(_RECORDS, codec=codec))),
                        PartitionProduceData(index=1, records=bytes(build_batch(_RECORDS[:1]))),
                    ),
                ),
            ),
        )
        for codec in Codec
        for acks in (1, -1)
    ]
    fetched = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 16)
    setting = ("retention.ms", "60000000")
    return [
        *produces,
        FetchRequest(
            max_wait_ms=1,
            min_bytes=1,
            max_bytes=1 << 16,
            topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=(fetched,)),),
        ),
        ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=0, timestamp=timestamp)
                        for timestamp in (-1, -2, -3, 1_700_000_000_001)
                    ),
                ),
            ),
        ),
        MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=True),
        ApiVersionsRequest(client_software_name="mutant", client_software_version="1.0"),
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name="made",
                    num_partitions=2,
                    replication_factor=1,
                    assignments=(),
                    configs=(CreatableTopicConfig(name=setting[0], value=setting[1]),),
                ),
            ),
            timeout_ms=1000,
        ),
        DeleteTopicsRequest(topics=(DeleteTopicState(name="doomed", topic_id=uuid.UUID(int=0)),), timeout_ms=1000),
        DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic, partitions=(DeleteRecordsPartition(partition_index=1, offset=1),)),),
            timeout_ms=1000,
        ),
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=(OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0),),
                ),
            ),
        ),
        DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(
                    resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=(setting[0],)
                ),
            ),
            include_synonyms=True,
        ),
        AlterConfigsRequest(
            resources=(
                AlterConfigsResource(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=topic,
                    configs=(AlterableConfig(name=setting[0], value=setting[1]),),
                ),
            ),
            validate_only=False,
        ),
        IncrementalAlterConfigsRequest(
            resources=(
                ChangedResource(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=topic,
                    configs=(ChangedConfig(name=setting[0], config_operation=0, value=setting[1]),),
                ),
            ),
            validate_only=False,
        ),
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name=topic, count=3, assignments=None),), timeout_ms=1000, validate_only=True
        ),
        DescribeLogDirsRequest(topics=(DescribableLogDirTopic(topic=topic, partitions=(0, 1)),)),
        DescribeClusterRequest(include_cluster_authorized_operations=True),
        DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0, 1)),)),
        ListConfigResourcesRequest(resource_types=(_TOPIC_RESOURCE,)),
        GetTelemetrySubscriptionsRequest(client_instance_id=_PUSHER),
        PushTelemetryRequest(
            client_instance_id=_PUSHER,
            subscription_id=Subscriptions().of(ClientAttributes(_PUSHER, None, "", "", "", "", "")).id,
            terminating=False,
            compression_type=Codec.NONE,
            metrics=metrics_data(gauge("g", 1.0, {"a": "b"}), histogram("h", [1.0], [2, 3], 4.0)),
        ),
        DescribeTopicPartitionsRequest(topics=(DescribedTopic(name=topic),), response_partition_limit=100),
    ]
