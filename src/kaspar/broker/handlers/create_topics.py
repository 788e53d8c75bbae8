"""CreateTopics: the controller decides; the answer tells what became of each topic."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import CreatedTopic, CreateTopics, NewTopic
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    if request.timeout_ms <= 0:
        return _refuse_all(request, ErrorCode.REQUEST_TIMED_OUT, None)
    event = CreateTopics(tuple(_new_topic(topic) for topic in request.topics), request.validate_only)
    try:
        created = await broker.controller.submit(event)
    except Refused as refusal:  # by the metadata store: it is full, or not ours any longer
        return _refuse_all(request, refusal.code, refusal.message)
    return CreateTopicsResponse(topics=tuple(_result(broker, topic) for topic in created))


def _refuse_all(request: CreateTopicsRequest, code: ErrorCode, message: str | None) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=topic.name, error_code=code, error_message=message) for topic in request.topics
        )
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments),
        tuple((config.name, config.value) for config in topic.configs),
    )


def _result(broker: "Broker", topic: CreatedTopic) -> CreatableTopicResult:
    if topic.outcome.error is not ErrorCode.NONE:
        return CreatableTopicResult(
            name=topic.name, error_code=topic.outcome.error, error_message=topic.outcome.message
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=tuple(
            CreatableTopicConfigs(
                name=entry.name,
                value=topic.configs.get(entry.name, entry.value),  # as it was sent, spaces and all
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in broker.settings.describe_topic(topic.configs)
        ),
    )
