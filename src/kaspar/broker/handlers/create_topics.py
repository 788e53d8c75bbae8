"""CreateTopics: the controller decides; the answer tells what became of each topic."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import RequestContext
from kaspar.config import BrokerSettings
from kaspar.metadata.events import CreatedTopic, CreateTopics, NewTopic
from kaspar.metadata.image import Configs
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
    results = _Results(broker.settings)
    return CreateTopicsResponse(topics=tuple(map(results.of, created)))


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


class _Results:
    """Most topics of a request have the same configs, which are described once."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._described: dict[frozenset[tuple[str, str]], tuple[CreatableTopicConfigs, ...]] = {}

    def of(self, topic: CreatedTopic) -> CreatableTopicResult:
        if topic.outcome.error is not ErrorCode.NONE:
            return CreatableTopicResult(
                name=topic.name, error_code=topic.outcome.error, error_message=topic.outcome.message
            )
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            num_partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            configs=self._configs(topic.configs),
        )

    def _configs(self, configs: Configs) -> tuple[CreatableTopicConfigs, ...]:
        key = frozenset(configs.items())
        if key not in self._described:
            self._described[key] = tuple(
                CreatableTopicConfigs(
                    name=entry.name,
                    value=configs.get(entry.name, entry.value),  # as it was sent, spaces and all
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                )
                for entry in self._settings.describe_topic(configs)
            )
        return self._described[key]
