"""Partition reassignments in progress."""

from collections.abc import Mapping
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.reassignments import Reassignment, list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.rest.v3.clusters import CLUSTER
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.partitions import PARTITION, describe_partition
from kaspar.rest.v3.resources import Relationship, Resource, ResourceList
from kaspar.rest.v3.topics import TOPIC, describe_topic

_TAG: Final = "Partition"


class ReassignmentData(Resource, kw_only=True):
    kind: str = "KafkaReassignment"
    cluster_id: str
    topic_name: str
    partition_id: int
    adding_replicas: list[int]
    removing_replicas: list[int]
    replicas: Relationship


class ReassignmentDataList(ResourceList, kw_only=True):
    kind: str = "KafkaReassignmentList"
    data: list[ReassignmentData]


async def _list_all(call: Call) -> ReassignmentDataList:
    names = call.names()
    return await call.ask(lambda admin: _many(names, "-", list_reassignments(admin)))


async def _list_of_topic(call: Call) -> ReassignmentDataList:
    names, topic = call.names(), call.topic

    def ask(admin: Admin) -> ReassignmentDataList:
        partitions = [TopicPartition(topic, each.partition) for each in describe_topic(admin, topic).partitions]
        return _many(names, topic, list_reassignments(admin, partitions))

    return await call.ask(ask)


async def _get(call: Call) -> ReassignmentData:
    names, where = call.names(), TopicPartition(call.topic, call.number("partition_id"))

    def ask(admin: Admin) -> ReassignmentData:
        describe_partition(admin, *where)
        found = list_reassignments(admin, [where]).get(where)
        if found is None:
            raise missing()
        return _one(names, where, found)

    return await call.ask(ask)


def _many(names: ResourceNames, topic: str, found: Mapping[TopicPartition, Reassignment]) -> ReassignmentDataList:
    metadata = names.many("topics", topic, "partitions", "-", "reassignment")
    return ReassignmentDataList(metadata=metadata, data=[_one(names, *each) for each in sorted(found.items())])


def _one(names: ResourceNames, where: TopicPartition, reassignment: Reassignment) -> ReassignmentData:
    path = ("topics", where.topic, "partitions", where.partition)
    crn = (("topic", where.topic), ("partition", where.partition), ("reassignment", None))
    return ReassignmentData(
        metadata=names.one(*path, "reassignment", crn=crn),
        cluster_id=names.cluster_id,
        topic_name=where.topic,
        partition_id=where.partition,
        adding_replicas=list(reassignment.adding_replicas),
        removing_replicas=list(reassignment.removing_replicas),
        replicas=names.related(*path, "replicas"),
    )


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        f"{CLUSTER}/topics/-/partitions/-/reassignment",
        _list_all,
        "List the reassignments in progress",
        _TAG,
        ReassignmentDataList,
    ),
    Endpoint(
        "GET",
        f"{TOPIC}/partitions/-/reassignment",
        _list_of_topic,
        "List the reassignments of a topic",
        _TAG,
        ReassignmentDataList,
    ),
    Endpoint("GET", f"{PARTITION}/reassignment", _get, "Get the reassignment of a partition", _TAG, ReassignmentData),
)
