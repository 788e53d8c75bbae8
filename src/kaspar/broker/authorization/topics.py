"""Guards of the APIs of topics and their records."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.authorization.guards import (
    MESSAGES,
    Call,
    Each,
    Guard,
    Need,
    denied_names,
    need,
    then,
    with_elements,
)
from kaspar.controller.events import DUPLICATE_NAME, UNKNOWN_ID, UNKNOWN_NAME
from kaspar.network.api import HandlerResult, Response
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartitionResult,
    CompactTopicsResponse,
    CompactTopicsTopic,
    CompactTopicsTopicResult,
)
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kaspar.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from kaspar.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
    TopicResponse,
)
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kaspar.protocol.messages.list_timestamps import (
    ListTimestampsPartitionResult,
    ListTimestampsResponse,
    ListTimestampsTopic,
    ListTimestampsTopicResult,
)
from kaspar.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)

_NO_LOW_WATERMARK: Final = -1


def _name(topic: Any) -> str:
    name: str = topic.name
    return name


# -- records -----------------------------------------------------------------------------------------------------------


def _no_offsets(topic: ListOffsetsTopic, code: ErrorCode) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=tuple(
            ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ),
    )


def _not_deleted(topic: DeleteRecordsTopic, code: ErrorCode) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(
        name=topic.name,
        partitions=tuple(
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=_NO_LOW_WATERMARK, error_code=code
            )
            for each in topic.partitions
        ),
    )


def _no_producers(topic: TopicRequest, code: ErrorCode) -> TopicResponse:
    return TopicResponse(
        name=topic.name,
        partitions=tuple(
            PartitionResponse(partition_index=index, error_code=code, error_message=MESSAGES[code], active_producers=())
            for index in topic.partition_indexes
        ),
    )


def _no_timestamps(topic: ListTimestampsTopic, code: ErrorCode) -> ListTimestampsTopicResult:
    return ListTimestampsTopicResult(
        name=topic.name,
        partitions=tuple(
            ListTimestampsPartitionResult(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ),
    )


def _not_compacted(topic: CompactTopicsTopic, code: ErrorCode) -> CompactTopicsTopicResult:
    return CompactTopicsTopicResult(
        name=topic.name,
        partitions=tuple(
            CompactTopicsPartitionResult(
                partition_index=each.partition_index, error_code=code, error_message=MESSAGES[code]
            )
            for each in topic.partitions
        ),
    )


LIST_OFFSETS: Final[Guard] = Each(
    need(AclOperation.DESCRIBE, ResourceType.TOPIC),
    "topics",
    "topics",
    _name,
    _no_offsets,
    lambda refused: ListOffsetsResponse(topics=refused),
)
DELETE_RECORDS: Final[Guard] = Each(
    need(AclOperation.DELETE, ResourceType.TOPIC),
    "topics",
    "topics",
    _name,
    _not_deleted,
    lambda refused: DeleteRecordsResponse(topics=refused),
)
DESCRIBE_PRODUCERS: Final[Guard] = Each(
    need(AclOperation.READ, ResourceType.TOPIC),
    "topics",
    "topics",
    _name,
    _no_producers,
    lambda refused: DescribeProducersResponse(topics=refused),
    in_place=True,
)
LIST_TIMESTAMPS: Final[Guard] = Each(
    need(AclOperation.DESCRIBE, ResourceType.TOPIC),
    "topics",
    "topics",
    _name,
    _no_timestamps,
    lambda refused: ListTimestampsResponse(topics=refused),
)
COMPACT_TOPICS: Final[Guard] = Each(
    need(AclOperation.ALTER, ResourceType.TOPIC),
    "topics",
    "topics",
    _name,
    _not_compacted,
    lambda refused: CompactTopicsResponse(topics=refused),
)


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpoch:
    """A follower needs CLUSTER_ACTION, a consumer DESCRIBE on its topics."""

    needs: tuple[Need, ...] = (
        Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "DESCRIBE on each topic is required"),
        need(AclOperation.DESCRIBE, ResourceType.TOPIC),
    )

    def __call__(self, call: Call, request: OffsetForLeaderEpochRequest) -> HandlerResult:
        on_cluster, on_topic = self.needs
        if call.caller.is_authorized_on_cluster(on_cluster.operation, quietly=True):
            return call.proceed(request)
        each = Each(
            on_topic,
            "topics",
            "topics",
            lambda topic: str(topic.topic),
            _no_end,
            lambda refused: OffsetForLeaderEpochResponse(topics=refused),
        )
        return each(call, request)


def _no_end(topic: OffsetForLeaderTopic, code: ErrorCode) -> OffsetForLeaderTopicResult:
    return OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=tuple(EpochEndOffset(partition=each.partition, error_code=code) for each in topic.partitions),
    )


OFFSET_FOR_LEADER_EPOCH: Final[Guard] = OffsetForLeaderEpoch()


# -- topics are created, changed and deleted ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """CREATE on the cluster allows every topic. The response has the settings of a topic only with DESCRIBE_CONFIGS."""

    needs: tuple[Need, ...] = (
        Need(AclOperation.CREATE, ResourceType.CLUSTER, "CREATE on each topic is required"),
        need(AclOperation.CREATE, ResourceType.TOPIC),
        Need(
            AclOperation.DESCRIBE_CONFIGS,
            ResourceType.TOPIC,
            "TOPIC_AUTHORIZATION_FAILED in place of the settings",
            of="settings in the response",
        ),
    )

    def __call__(self, call: Call, request: CreateTopicsRequest) -> HandlerResult:
        on_cluster, on_topic, on_configs = self.needs
        caller = call.caller
        names = Counter(each.name for each in request.topics)
        denied: frozenset[str] = frozenset()
        if not caller.is_authorized_on_cluster(on_cluster.operation, quietly=True):
            denied = denied_names(caller, on_topic, names.elements())
        refused = tuple(
            CreatableTopicResult(name=name, error_code=on_topic.code, error_message="Authorization failed.")
            if count == 1
            else CreatableTopicResult(
                name=name, error_code=DUPLICATE_NAME.error, error_message=DUPLICATE_NAME.message
            )  # the same error as if it were allowed
            for name, count in names.items()
            if name in denied
        )
        allowed = tuple(each for each in request.topics if each.name not in denied)
        if not allowed and refused:
            return CreateTopicsResponse(topics=refused)

        def shown(result: CreatableTopicResult) -> CreatableTopicResult:
            if result.error_code or caller.is_authorized(
                on_configs.operation, on_configs.resource_type, result.name, quietly=True
            ):
                return result
            return replace(
                result,
                topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                num_partitions=-1,
                replication_factor=-1,
                configs=(),
            )

        def merged(response: Response) -> Response:
            assert isinstance(response, CreateTopicsResponse)
            return CreateTopicsResponse(topics=(*map(shown, response.topics), *refused))

        return then(call.proceed(replace(request, topics=allowed)), merged)


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    needs: tuple[Need, ...] = (need(AclOperation.ALTER, ResourceType.TOPIC),)

    def __call__(self, call: Call, request: CreatePartitionsRequest) -> HandlerResult:
        (on_topic,) = self.needs
        names = Counter(each.name for each in request.topics)
        denied = denied_names(call.caller, on_topic, names.elements())
        if not denied:
            return call.proceed(request)
        refused = tuple(
            CreatePartitionsTopicResult(name=name, error_code=on_topic.code)
            if count == 1
            else CreatePartitionsTopicResult(
                name=name, error_code=DUPLICATE_NAME.error, error_message=DUPLICATE_NAME.message
            )  # the same error as if it were allowed
            for name, count in names.items()
            if name in denied
        )
        allowed = tuple(each for each in request.topics if each.name not in denied)
        if not allowed:
            return CreatePartitionsResponse(results=refused)
        return then(
            call.proceed(replace(request, topics=allowed)),
            lambda response: with_elements(response, "results", refused, call.context.version, first=True),
        )


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """The name of a topic that was given by its id is returned only if the client may describe it. Whether a topic with
    a given name exists is hidden from clients that may not describe it.
    """

    needs: tuple[Need, ...] = (
        need(AclOperation.DELETE, ResourceType.TOPIC),
        Need(AclOperation.DESCRIBE, ResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED, without the name"),
    )

    def __call__(self, call: Call, request: DeleteTopicsRequest) -> HandlerResult:
        refused: list[DeletableTopicResult] = []
        allowed_names = []
        for name in request.topic_names:
            refusal = self._refusal_of_name(call, name)
            if refusal is None:
                allowed_names.append(name)
            else:
                refused.append(refusal)
        allowed_topics = []
        for topic in request.topics:
            refusal = self._refusal_of(call, topic)
            if refusal is None:
                allowed_topics.append(topic)
            else:
                refused.append(refusal)
        if not refused:
            return call.proceed(request)
        if not allowed_names and not allowed_topics:
            return DeleteTopicsResponse(responses=tuple(refused))
        return then(
            call.proceed(replace(request, topic_names=tuple(allowed_names), topics=tuple(allowed_topics))),
            lambda response: with_elements(response, "responses", refused, call.context.version, first=False),
        )

    def _refusal_of_name(self, call: Call, name: str) -> DeletableTopicResult | None:
        """The refusal, or None. If the topic does not exist, a client that may describe it is told so here, and not by
        the controller, which may have created the topic by then.
        """
        delete, describe = self.needs
        if not call.caller.is_authorized(describe.operation, describe.resource_type, name, quietly=True):
            delete.is_authorized(call.caller, name)  # for the audit log
            return self._refusal(name=name)
        if name in call.images.current.topics:
            return None if delete.is_authorized(call.caller, name) else self._refusal(name=name)
        if call.caller.is_authorized(delete.operation, delete.resource_type, name, quietly=True):
            return None
        return DeletableTopicResult(name=name, error_code=UNKNOWN_NAME.error, error_message=UNKNOWN_NAME.message)

    def _refusal_of(self, call: Call, topic: DeleteTopicState) -> DeletableTopicResult | None:
        delete, describe = self.needs
        if topic.topic_id == ZERO_UUID:
            return None if topic.name is None else self._refusal_of_name(call, topic.name)
        if topic.name is not None:
            return None  # the controller refuses a name together with an id
        name = call.images.current.topic_names.get(topic.topic_id)
        if name is None:  # so it is unknown whether this client may delete it
            return DeletableTopicResult(
                name=None,
                topic_id=topic.topic_id,
                error_code=UNKNOWN_ID.error,
                error_message=UNKNOWN_ID.message,
            )
        if delete.is_authorized(call.caller, name):
            return None
        is_visible = call.caller.is_authorized(describe.operation, describe.resource_type, name, quietly=True)
        return replace(self._refusal(name=name if is_visible else None), topic_id=topic.topic_id)

    def _refusal(self, *, name: str | None) -> DeletableTopicResult:
        code = self.needs[0].code
        return DeletableTopicResult(name=name, error_code=code, error_message=MESSAGES[code])


CREATE_TOPICS: Final[Guard] = CreateTopics()
CREATE_PARTITIONS: Final[Guard] = CreatePartitions()
DELETE_TOPICS: Final[Guard] = DeleteTopics()
