"""The partitions of topics, and their replicas."""

from collections.abc import Iterable
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import ClusterDescription
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.topics import PartitionDescription, describe_topics_by_metadata
from kaspar.rest.errors import BAD_REQUEST, PARTITION_NOT_FOUND, RestError
from kaspar.rest.v3.clusters import BROKER, check_broker
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import Relationship, Resource, ResourceList
from kaspar.rest.v3.topics import TOPIC, describe_topic
from kaspar.web.openapi import Parameter, ParameterKind

PARTITION: Final = f"{TOPIC}/partitions/{{partition_id}}"
_REPLICA: Final = f"{PARTITION}/replicas/{{broker_id}}"
_PARTITIONS: Final = "Partition"
_REPLICAS: Final = "Replica"
_BOTH_ENDS: Final = "earliest_and_latest"
_OFFSET_TYPE: Final = Parameter(
    "offset_type", ParameterKind.TEXT, "Which offsets", default=_BOTH_ENDS, choices=(_BOTH_ENDS,)
)


class PartitionData(Resource, kw_only=True):
    kind: str = "KafkaPartition"
    cluster_id: str
    topic_name: str
    partition_id: int
    leader: Relationship | None
    """Null while there is no leader."""
    replicas: Relationship
    reassignment: Relationship


class PartitionDataList(ResourceList, kw_only=True):
    kind: str = "KafkaPartitionList"
    data: list[PartitionData]


class PartitionWithOffsetsData(Resource, kw_only=True):
    kind: str = "KafkaPartitionWithOffsets"
    cluster_id: str
    topic_name: str
    partition_id: int
    earliest_offset: int
    latest_offset: int


class ReplicaData(Resource, kw_only=True):
    kind: str = "KafkaReplica"
    cluster_id: str
    topic_name: str
    partition_id: int
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    broker: Relationship


class ReplicaDataList(ResourceList, kw_only=True):
    kind: str = "KafkaReplicaList"
    data: list[ReplicaData]


# --- Partitions -------------------------------------------------------------------------------------------------------


async def _list(call: Call) -> PartitionDataList:
    names, topic = call.names(), call.topic

    def ask(admin: Admin) -> PartitionDataList:
        partitions = describe_topic(admin, topic).partitions
        data = [_partition(names, topic, each) for each in partitions]
        return PartitionDataList(metadata=names.many("topics", topic, "partitions"), data=data)

    return await call.ask(ask)


async def _get(call: Call) -> PartitionData:
    names, topic, number = call.names(), call.topic, call.number("partition_id")
    return await call.ask(lambda admin: _partition(names, topic, describe_partition(admin, topic, number)))


async def _get_offsets(call: Call) -> PartitionWithOffsetsData:
    names, topic, number = call.names(), call.topic, call.number("partition_id")
    if (offset_type := call.text("offset_type", _BOTH_ENDS)) != _BOTH_ENDS:
        raise RestError(BAD_REQUEST, f"offset_type:{offset_type} is invalid")

    def ask(admin: Admin) -> PartitionWithOffsetsData:
        describe_partition(admin, topic, number)
        where = TopicPartition(topic, number)
        crn = (("topic", topic), ("partition", number), ("offset_type", offset_type))
        return PartitionWithOffsetsData(
            metadata=names.one("topics", topic, "partitions", number, "offset", crn=crn),
            cluster_id=names.cluster_id,
            topic_name=topic,
            partition_id=number,
            earliest_offset=accepted(list_offsets(admin, {where: OffsetSpec.EARLIEST})[where]).offset,
            latest_offset=accepted(list_offsets(admin, {where: OffsetSpec.LATEST})[where]).offset,
        )

    return await call.ask(ask)


def describe_partition(admin: Admin, topic: str, number: int) -> PartitionDescription:
    """Raises Refused and RestError."""
    for partition in describe_topic(admin, topic).partitions:
        if partition.partition == number:
            return partition
    raise RestError(PARTITION_NOT_FOUND)


def _partition(names: ResourceNames, topic: str, partition: PartitionDescription) -> PartitionData:
    path = ("topics", topic, "partitions", partition.partition)
    return PartitionData(
        metadata=names.one(*path, crn=(("topic", topic), ("partition", partition.partition))),
        cluster_id=names.cluster_id,
        topic_name=topic,
        partition_id=partition.partition,
        leader=names.related(*path, "replicas", partition.leader) if partition.leader >= 0 else None,
        replicas=names.related(*path, "replicas"),
        reassignment=names.related(*path, "reassignment"),
    )


# --- Replicas ---------------------------------------------------------------------------------------------------------


async def _list_replicas(call: Call) -> ReplicaDataList:
    names, topic, number = call.names(), call.topic, call.number("partition_id")

    def ask(admin: Admin) -> ReplicaDataList:
        path = ("topics", topic, "partitions", number, "replicas")
        data = list(_replicas(names, topic, describe_partition(admin, topic, number)))
        return ReplicaDataList(metadata=names.many(*path), data=data)

    return await call.ask(ask)


async def _get_replica(call: Call) -> ReplicaData:
    names, topic, number = call.names(), call.topic, call.number("partition_id")
    broker_id = call.number("broker_id")

    def ask(admin: Admin) -> ReplicaData:
        for replica in _replicas(names, topic, describe_partition(admin, topic, number)):
            if replica.broker_id == broker_id:
                return replica
        raise missing()

    return await call.ask(ask)


async def _list_broker_replicas(call: Call) -> ReplicaDataList:
    names, broker_id = call.names(), call.number("broker_id")

    def ask(admin: Admin, cluster: ClusterDescription) -> ReplicaDataList:
        check_broker(cluster, broker_id)
        data = [
            replica
            for _, topic in sorted(describe_topics_by_metadata(admin).items())
            if not isinstance(topic, Refused)  # deleted meanwhile
            for partition in topic.partitions
            if broker_id in partition.replicas
            for replica in _replicas(names, topic.name, partition)
            if replica.broker_id == broker_id
        ]
        return ReplicaDataList(metadata=names.many("brokers", broker_id, "partition-replicas"), data=data)

    return await call.ask_cluster(ask)


def _replicas(names: ResourceNames, topic: str, partition: PartitionDescription) -> Iterable[ReplicaData]:
    number = partition.partition
    for broker_id in sorted(partition.replicas):
        yield ReplicaData(
            metadata=names.one(
                "topics",
                topic,
                "partitions",
                number,
                "replicas",
                broker_id,
                crn=(("topic", topic), ("partition", number), ("replica", broker_id)),
            ),
            cluster_id=names.cluster_id,
            topic_name=topic,
            partition_id=number,
            broker_id=broker_id,
            is_leader=broker_id == partition.leader,
            is_in_sync=broker_id in partition.isr,
            broker=names.related("brokers", broker_id),
        )


ENDPOINTS: Final = (
    Endpoint("GET", f"{TOPIC}/partitions", _list, "List the partitions of a topic", _PARTITIONS, PartitionDataList),
    Endpoint("GET", PARTITION, _get, "Get a partition", _PARTITIONS, PartitionData),
    Endpoint(
        "GET",
        f"{PARTITION}/offset",
        _get_offsets,
        "Get the first and the last offset of a partition",
        _PARTITIONS,
        PartitionWithOffsetsData,
        parameters=(_OFFSET_TYPE,),
    ),
    Endpoint(
        "GET", f"{PARTITION}/replicas", _list_replicas, "List the replicas of a partition", _REPLICAS, ReplicaDataList
    ),
    Endpoint("GET", _REPLICA, _get_replica, "Get a replica", _REPLICAS, ReplicaData),
    Endpoint(
        "GET",
        f"{BROKER}/partition-replicas",
        _list_broker_replicas,
        "List the replicas on a broker",
        _REPLICAS,
        ReplicaDataList,
    ),
)
