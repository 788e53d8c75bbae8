"""Consumer groups of both protocols, their members, and the members' assignments."""

import re
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.groups import (
    GroupDescription,
    GroupMember,
    GroupType,
    describe_consumer_groups,
    list_consumer_groups,
)
from kaspar.client.admin.session import Admin
from kaspar.rest.errors import RestError
from kaspar.rest.v3.clusters import CLUSTER
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import Relationship, Resource, ResourceList

GROUP: Final = f"{CLUSTER}/consumer-groups/{{consumer_group_id}}"
TAG: Final = "Consumer Group"
_CONSUMER: Final = f"{GROUP}/consumers/{{consumer_id}}"
_DEAD: Final = "Dead"


class ConsumerGroupData(Resource, kw_only=True):
    kind: str = "KafkaConsumerGroup"
    cluster_id: str
    consumer_group_id: str
    is_simple: bool
    partition_assignor: str
    state: str
    type: str
    is_mixed_consumer_group: bool
    """Whether the group has members of both protocols, as during its upgrade (KIP-848)."""
    coordinator: Relationship
    consumers: Relationship
    lag_summary: Relationship


class ConsumerGroupDataList(ResourceList, kw_only=True):
    kind: str = "KafkaConsumerGroupList"
    data: list[ConsumerGroupData]


class ConsumerData(Resource, kw_only=True):
    kind: str = "KafkaConsumer"
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    instance_id: str | None
    client_id: str
    assignments: Relationship


class ConsumerDataList(ResourceList, kw_only=True):
    kind: str = "KafkaConsumerList"
    data: list[ConsumerData]


class ConsumerAssignmentData(Resource, kw_only=True):
    kind: str = "KafkaConsumerAssignment"
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    topic_name: str
    partition_id: int
    partition: Relationship
    lag: Relationship


class ConsumerAssignmentDataList(ResourceList, kw_only=True):
    kind: str = "KafkaConsumerAssignmentList"
    data: list[ConsumerAssignmentData]


# --- Groups -----------------------------------------------------------------------------------------------------------


async def _list(call: Call) -> ConsumerGroupDataList:
    names = call.names()

    def ask(admin: Admin) -> ConsumerGroupDataList:
        described = describe_consumer_groups(admin, [each.group_id for each in list_consumer_groups(admin)])
        data = [_group(names, each) for each in described.values() if _exists(each)]
        return ConsumerGroupDataList(metadata=names.many("consumer-groups"), data=data)

    return await call.ask(ask)


async def _get(call: Call) -> ConsumerGroupData:
    names, group_id = call.names(), call.path["consumer_group_id"]
    return await call.ask(lambda admin: _group(names, describe_group(admin, group_id, missing())))


def describe_group(admin: Admin, group_id: str, none: RestError | None = None) -> GroupDescription:
    """Raises `none` or another RestError if the group does not exist, and Refused for other errors."""
    described = describe_consumer_groups(admin, [group_id])[group_id]
    if isinstance(described, Refused) and described.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        raise described
    if isinstance(described, Refused) or not _exists(described):
        raise none or missing(f"Consumer Group {group_id} could not be found.")
    return described


def _exists(described: GroupDescription | Refused) -> bool:
    """Brokers before Kafka 4.0 describe a group that does not exist as dead."""
    if isinstance(described, Refused):
        return False
    return not (described.is_simple and described.state == _DEAD)


def _group(names: ResourceNames, group: GroupDescription | Refused) -> ConsumerGroupData:
    assert isinstance(group, GroupDescription)
    path = ("consumer-groups", group.group_id)
    is_mixed = group.type is GroupType.CONSUMER and any(each.is_upgraded is False for each in group.members)
    return ConsumerGroupData(
        metadata=names.one(*path, crn=(("consumer-group", group.group_id),)),
        cluster_id=names.cluster_id,
        consumer_group_id=group.group_id,
        is_simple=group.is_simple,
        partition_assignor=group.assignor,
        state=state_name(group.state),
        type=group.type.name,
        is_mixed_consumer_group=is_mixed,
        coordinator=names.related("brokers", group.coordinator.broker_id),
        consumers=names.related(*path, "consumers"),
        lag_summary=names.related(*path, "lag-summary"),
    )


def state_name(state: str) -> str:
    """The API's form of a group state: PREPARING_REBALANCE for Kafka's PreparingRebalance."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper() or "UNKNOWN"


# --- Members ----------------------------------------------------------------------------------------------------------


async def _list_consumers(call: Call) -> ConsumerDataList:
    names, group_id = call.names(), call.path["consumer_group_id"]

    def ask(admin: Admin) -> ConsumerDataList:
        members = sorted(describe_group(admin, group_id).members, key=lambda each: each.member_id)
        data = [_consumer(names, group_id, each) for each in members]
        return ConsumerDataList(metadata=names.many("consumer-groups", group_id, "consumers"), data=data)

    return await call.ask(ask)


async def _get_consumer(call: Call) -> ConsumerData:
    names, group_id, consumer_id = call.names(), call.path["consumer_group_id"], call.path["consumer_id"]
    return await call.ask(lambda admin: _consumer(names, group_id, _member(admin, group_id, consumer_id, missing())))


def _member(admin: Admin, group_id: str, consumer_id: str, none: RestError) -> GroupMember:
    for member in describe_group(admin, group_id).members:
        if member.member_id == consumer_id:
            return member
    raise none


def _consumer(names: ResourceNames, group_id: str, member: GroupMember) -> ConsumerData:
    path = ("consumer-groups", group_id, "consumers", member.member_id)
    return ConsumerData(
        metadata=names.one(*path, crn=(("consumer-group", group_id), ("consumer", member.member_id))),
        cluster_id=names.cluster_id,
        consumer_group_id=group_id,
        consumer_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        assignments=names.related(*path, "assignments"),
    )


async def _list_assignments(call: Call) -> ConsumerAssignmentDataList:
    names, group_id, consumer_id = call.names(), call.path["consumer_group_id"], call.path["consumer_id"]

    def ask(admin: Admin) -> ConsumerAssignmentDataList:
        member = _member(admin, group_id, consumer_id, missing(f"Consumer {consumer_id} could not be found."))
        path = ("consumer-groups", group_id, "consumers", consumer_id, "assignments")
        data = [_assignment(names, group_id, consumer_id, each) for each in sorted(member.assignment)]
        return ConsumerAssignmentDataList(metadata=names.many(*path), data=data)

    return await call.ask(ask)


async def _get_assignment(call: Call) -> ConsumerAssignmentData:
    names, group_id, consumer_id = call.names(), call.path["consumer_group_id"], call.path["consumer_id"]
    where = TopicPartition(call.topic, call.number("partition_id"))

    def ask(admin: Admin) -> ConsumerAssignmentData:
        member = _member(admin, group_id, consumer_id, missing(f"Consumer {consumer_id} could not be found."))
        if where not in member.assignment:
            raise missing()
        return _assignment(names, group_id, consumer_id, where)

    return await call.ask(ask)


def _assignment(names: ResourceNames, group_id: str, consumer_id: str, where: TopicPartition) -> ConsumerAssignmentData:
    path = ("consumer-groups", group_id, "consumers", consumer_id, "assignments", *_place(where))
    crn = (
        ("consumer-group", group_id),
        ("consumer", consumer_id),
        ("assignment", where.topic),
        ("partition", where.partition),
    )
    return ConsumerAssignmentData(
        metadata=names.one(*path, crn=crn),
        cluster_id=names.cluster_id,
        consumer_group_id=group_id,
        consumer_id=consumer_id,
        topic_name=where.topic,
        partition_id=where.partition,
        partition=names.related("topics", *_place(where)),
        lag=names.related("consumer-groups", group_id, "lags", *_place(where)),
    )


def _place(where: TopicPartition) -> tuple[str, str, int]:
    return where.topic, "partitions", where.partition


ENDPOINTS: Final = (
    Endpoint("GET", f"{CLUSTER}/consumer-groups", _list, "List the consumer groups", TAG, ConsumerGroupDataList),
    Endpoint("GET", GROUP, _get, "Get a consumer group", TAG, ConsumerGroupData),
    Endpoint("GET", f"{GROUP}/consumers", _list_consumers, "List the consumers of a group", TAG, ConsumerDataList),
    Endpoint("GET", _CONSUMER, _get_consumer, "Get a consumer", TAG, ConsumerData),
    Endpoint(
        "GET",
        f"{_CONSUMER}/assignments",
        _list_assignments,
        "List the partitions of a consumer",
        TAG,
        ConsumerAssignmentDataList,
    ),
    Endpoint(
        "GET",
        f"{_CONSUMER}/assignments/{{topic_name}}/partitions/{{partition_id}}",
        _get_assignment,
        "Get a partition of a consumer",
        TAG,
        ConsumerAssignmentData,
    ),
)
