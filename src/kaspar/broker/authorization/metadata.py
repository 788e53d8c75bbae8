"""Guards of Metadata and DescribeTopicPartitions, which hide topics that the client may not describe."""

from dataclasses import dataclass, replace
from typing import Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.authorization.guards import Call, Guard, Need, denied_names, need, then, with_elements
from kaspar.broker.services import CurrentSettings
from kaspar.metadata.topic_names import is_internal
from kaspar.network.api import HandlerResult
from kaspar.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

_FIRST_WITH_NULL_FOR_ALL: Final = 1
_FIRST_WITH_ID_ALONE: Final = 12

_DESCRIBE: Final = need(AclOperation.DESCRIBE, ResourceType.TOPIC)


def _describable(call: Call) -> tuple[list[str], bool]:
    """The topics that the client may describe, and whether these are all."""
    topics = call.images.current.topics
    names = [
        name
        for name in topics
        if call.caller.is_authorized(_DESCRIBE.operation, _DESCRIBE.resource_type, name, quietly=True)
    ]
    return names, len(names) == len(topics)


@dataclass(frozen=True, slots=True)
class Metadata:
    """A request for all topics returns only those that the client may describe. Creating a topic that does not exist
    needs CREATE on the cluster or on the topic.
    """

    settings: CurrentSettings
    needs: tuple[Need, ...] = (
        _DESCRIBE,
        Need(AclOperation.CREATE, ResourceType.CLUSTER, "CREATE on each topic is required", of="topics to be created"),
        need(AclOperation.CREATE, ResourceType.TOPIC, of="topics to be created"),
        Need(AclOperation.DESCRIBE, ResourceType.CLUSTER, "no authorized operations (0)", of="authorized operations"),
    )

    def __call__(self, call: Call, request: MetadataRequest) -> HandlerResult:
        topics, version = request.topics, call.context.version
        if topics is None or (version < _FIRST_WITH_NULL_FOR_ALL and not topics):
            return self._all(call, request)
        if version < _FIRST_WITH_ID_ALONE and any(each.name is None or each.topic_id != ZERO_UUID for each in topics):
            return call.proceed(request)  # the handler refuses such a request
        image = call.images.current

        def name_of(topic: MetadataRequestTopic) -> str | None:
            """The topic's name; None if there is no topic with that id, an error that the handler returns."""
            return (topic.name or "") if topic.topic_id == ZERO_UUID else image.topic_names.get(topic.topic_id)

        named = [(name_of(each), each) for each in dict.fromkeys(topics)]
        hidden = denied_names(call.caller, _DESCRIBE, [name for name, _ in named if name is not None])
        not_created = self._not_created(call, request, [name for name, _ in named if name and name not in hidden])
        if not hidden and not not_created:
            return call.proceed(request)
        code = _DESCRIBE.code
        refused = [
            MetadataResponseTopic(error_code=code, name=name, is_internal=is_internal(name), partitions=())
            for name in not_created
        ] + [
            MetadataResponseTopic(
                error_code=code,
                name=name if each.topic_id == ZERO_UUID else None,
                topic_id=each.topic_id,
                partitions=(),
            )
            for name, each in named
            if name in hidden
        ]
        allowed = tuple(each for name, each in named if name not in hidden and name not in not_created)
        return then(
            self._proceed_with(call, replace(request, topics=allowed)),
            lambda response: with_elements(response, "topics", refused, version, first=False),
        )

    def _all(self, call: Call, request: MetadataRequest) -> HandlerResult:
        names, are_all = _describable(call)
        if are_all:
            return call.proceed(request)
        topics = tuple(MetadataRequestTopic(name=name) for name in names)
        return self._proceed_with(call, replace(request, topics=topics, allow_auto_topic_creation=False))

    @staticmethod
    def _proceed_with(call: Call, request: MetadataRequest) -> HandlerResult:
        """Call the handler. In version 0 an empty array means all topics, so no topics are requested in version 1."""
        context = call.context
        if not request.topics and context.version < _FIRST_WITH_NULL_FOR_ALL:
            context = context._replace(version=_FIRST_WITH_NULL_FOR_ALL)
        return call.handler(context, request)

    def _not_created(self, call: Call, request: MetadataRequest, names: list[str]) -> tuple[str, ...]:
        """The missing topics that the request would create, but that the client may not create."""
        if not request.allow_auto_topic_creation or not self.settings.config.auto_create_topics_enable:
            return ()
        _, on_cluster, on_topic, _ = self.needs
        topics = call.images.current.topics
        missing = [name for name in names if name not in topics]
        if not missing or call.caller.is_authorized_on_cluster(on_cluster.operation, quietly=True):
            return ()
        denied = denied_names(call.caller, on_topic, missing)
        return tuple(name for name in missing if name in denied)


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitions:
    needs: tuple[Need, ...] = (_DESCRIBE,)

    def __call__(self, call: Call, request: DescribeTopicPartitionsRequest) -> HandlerResult:
        if not request.topics:
            names, are_all = _describable(call)
            if are_all:
                return call.proceed(request)
            if not names:
                return DescribeTopicPartitionsResponse(topics=())
            return call.proceed(replace(request, topics=tuple(TopicRequest(name=name) for name in names)))
        start = "" if request.cursor is None else request.cursor.topic_name
        wanted = sorted({each.name for each in request.topics if each.name >= start})
        hidden = denied_names(call.caller, _DESCRIBE, wanted)
        if not hidden:
            return call.proceed(request)
        refused = tuple(
            DescribeTopicPartitionsResponseTopic(
                error_code=_DESCRIBE.code, name=name, topic_id=ZERO_UUID, partitions=()
            )
            for name in wanted
            if name in hidden
        )
        allowed = tuple(TopicRequest(name=name) for name in wanted if name not in hidden)
        if not allowed:
            return DescribeTopicPartitionsResponse(topics=refused)
        return then(
            call.proceed(replace(request, topics=allowed)),
            lambda response: with_elements(response, "topics", refused, call.context.version, first=False),
        )


DESCRIBE_TOPIC_PARTITIONS: Final[Guard] = DescribeTopicPartitions()
