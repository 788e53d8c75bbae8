"""/v3/clusters/{cluster_id}/topics."""

from typing import Annotated, Final

import msgspec
from starlette.responses import Response

from kaspar.base.errors import Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.client.admin.created_topic import CreatedTopic, create_topic
from kaspar.client.admin.creation import BROKERS_DEFAULT, NewTopic
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.partitions import NewPartitions, create_partitions
from kaspar.client.admin.session import Admin, accepted, raise_first
from kaspar.client.admin.topics import TopicDescription, describe_topics_by_metadata
from kaspar.rest.errors import BAD_REQUEST, RestError
from kaspar.rest.http import json_response
from kaspar.rest.v3.clusters import CLUSTER
from kaspar.rest.v3.endpoint import Call, Endpoint, NoContent
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import Relationship, Resource, ResourceList
from kaspar.web.openapi import Parameter, ParameterKind, ResponseSpec

TOPIC: Final = f"{CLUSTER}/topics/{{topic_name}}"
_TAG: Final = "Topic"
_OPERATIONS: Final = Parameter(
    "include_authorized_operations", ParameterKind.FLAG, "Include the caller's authorized operations"
)

Partition = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
_Count = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_Factor = Annotated[int, msgspec.Meta(ge=-(1 << 15), le=(1 << 15) - 1)]


class TopicData(Resource, kw_only=True):
    kind: str = "KafkaTopic"
    cluster_id: str
    topic_name: str
    is_internal: bool
    replication_factor: int
    partitions_count: int
    partitions: Relationship
    configs: Relationship
    partition_reassignments: Relationship
    authorized_operations: list[str]
    """Empty unless they are requested."""


class TopicDataList(ResourceList, kw_only=True):
    kind: str = "KafkaTopicList"
    data: list[TopicData]


class ReplicasAssignment(msgspec.Struct, forbid_unknown_fields=True):
    partition_id: Partition
    broker_ids: list[Partition]


class TopicConfigValue(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str | None = None


class CreateTopicRequest(msgspec.Struct, forbid_unknown_fields=True):
    topic_name: str
    partitions_count: _Count | None = None
    replication_factor: _Factor | None = None
    replicas_assignments: list[ReplicasAssignment] | dict[str, list[Partition]] | None = None
    """Either form is accepted: the list in the description of Confluent's API, or its implementation's map by
    partition."""
    configs: list[TopicConfigValue] | None = None
    validate_only: bool | None = None


class PartitionsCountRequest(msgspec.Struct, forbid_unknown_fields=True):
    partitions_count: _Count


_CREATE: Final = msgspec.json.Decoder(CreateTopicRequest, strict=False)
_PARTITIONS: Final = msgspec.json.Decoder(PartitionsCountRequest, strict=False)


async def _list(call: Call) -> TopicDataList:
    names, include = call.names(), call.flag("include_authorized_operations")

    def ask(admin: Admin) -> TopicDataList:
        described = describe_topics_by_metadata(admin, include_authorized_operations=include)
        topics = [each for _, each in sorted(described.items()) if not isinstance(each, Refused)]  # deleted meanwhile
        return TopicDataList(metadata=names.many("topics"), data=[_topic(names, each) for each in topics])

    return await call.ask(ask)


async def _get(call: Call) -> TopicData:
    names, topic, include = call.names(), call.topic, call.flag("include_authorized_operations")
    return await call.ask(lambda admin: _topic(names, describe_topic(admin, topic, operations=include)))


def describe_topic(admin: Admin, name: str, *, operations: bool = False) -> TopicDescription:
    """Raises Refused."""
    return accepted(describe_topics_by_metadata(admin, [name], include_authorized_operations=operations)[name])


def _topic(names: ResourceNames, topic: TopicDescription) -> TopicData:
    return TopicData(
        metadata=names.one("topics", topic.name, crn=(("topic", topic.name),)),
        cluster_id=names.cluster_id,
        topic_name=topic.name,
        is_internal=topic.is_internal,
        replication_factor=len(topic.partitions[0].replicas) if topic.partitions else 0,
        partitions_count=len(topic.partitions),
        partitions=names.related("topics", topic.name, "partitions"),
        configs=names.related("topics", topic.name, "configs"),
        partition_reassignments=names.related("topics", topic.name, "partitions", "-", "reassignment"),
        authorized_operations=sorted(each.name for each in topic.authorized_operations or ()),
    )


async def _create(call: Call) -> Response:
    names, request = call.names(), await call.body(_CREATE)
    wanted, validate_only = _new_topic(request), bool(request.validate_only)
    created = await call.ask(lambda admin: create_topic(admin, wanted, validate_only=validate_only))
    topic = _created(names, wanted, created)
    response = json_response(topic, status=200 if validate_only else 201)
    response.headers["location"] = topic.metadata.self
    return response


def _new_topic(request: CreateTopicRequest) -> NewTopic:
    return NewTopic(
        request.topic_name,
        BROKERS_DEFAULT if request.partitions_count is None else request.partitions_count,
        BROKERS_DEFAULT if request.replication_factor is None else request.replication_factor,
        {each.name: each.value for each in request.configs or ()},
        _assignments(request.replicas_assignments),
    )


def _assignments(given: list[ReplicasAssignment] | dict[str, list[int]] | None) -> list[list[int]]:
    """The replicas of each partition, numbered from 0 without gaps. Raises RestError."""
    if isinstance(given, dict):
        if not all(each.isascii() and each.isdecimal() and len(each) <= 10 for each in given):
            raise RestError(BAD_REQUEST, "replicas_assignments has a partition that is not a number")
        pairs = [(int(partition), replicas) for partition, replicas in given.items()]
    else:
        pairs = [(each.partition_id, each.broker_ids) for each in given or ()]
    pairs.sort(key=lambda each: each[0])
    if [partition for partition, _ in pairs] != list(range(len(pairs))):
        raise RestError(BAD_REQUEST, "replicas_assignments must have each partition from 0 on, and each once")
    return [replicas for _, replicas in pairs]


def _created(names: ResourceNames, wanted: NewTopic, created: CreatedTopic) -> TopicData:
    """The topic with the counts that the broker returned, or else those of the request."""
    assignments = wanted.assignments
    partitions = created.partitions if created.partitions >= 0 else len(assignments) or wanted.partitions
    factor = created.replication_factor
    if factor < 0:
        factor = len(assignments[0]) if assignments else wanted.replication_factor
    data = _topic(names, TopicDescription(wanted.name, ZERO_UUID, False, ()))
    return msgspec.structs.replace(data, partitions_count=max(partitions, 0), replication_factor=max(factor, 0))


async def _add_partitions(call: Call) -> TopicData:
    names, topic = call.names(), call.topic
    count = (await call.body(_PARTITIONS)).partitions_count

    def ask(admin: Admin) -> TopicData:
        refused = create_partitions(admin, {topic: NewPartitions(count)})[topic]
        raise_first([refused])
        return msgspec.structs.replace(_topic(names, describe_topic(admin, topic)), partitions_count=count)

    return await call.ask(ask)


async def _delete(call: Call) -> type[NoContent]:
    topic = call.topic
    await call.ask(lambda admin: raise_first(delete_topics(admin, [topic]).values()))
    call.context.topics.forget(topic)
    return NoContent


ENDPOINTS: Final = (
    Endpoint("GET", f"{CLUSTER}/topics", _list, "List the topics", _TAG, TopicDataList, parameters=(_OPERATIONS,)),
    Endpoint(
        "POST",
        f"{CLUSTER}/topics",
        _create,
        "Create a topic",
        _TAG,
        TopicData,
        201,
        CreateTopicRequest,
        more_responses=(("200", ResponseSpec("The topic that `validate_only` would have created", TopicData)),),
    ),
    Endpoint("GET", TOPIC, _get, "Get a topic", _TAG, TopicData, parameters=(_OPERATIONS,)),
    Endpoint("PATCH", TOPIC, _add_partitions, "Add partitions", _TAG, TopicData, 200, PartitionsCountRequest),
    Endpoint("DELETE", TOPIC, _delete, "Delete a topic", _TAG, None, 204),
)
