"""CreateTopics: the controller decides; the response has the outcome of each topic."""

from collections import Counter
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers.mutation_charges import EXCEEDED, MutationCharges, MutationQuota
from kaspar.broker.services import CurrentSettings
from kaspar.config import BrokerSettings
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import DUPLICATE_NAME, CreatedTopic, CreateTopics, NewTopic, Outcome
from kaspar.metadata.image import Configs
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

STRICT_QUOTA_SINCE: Final = 6


class CreateTopicsHandler:
    def __init__(self, controller: ControllerChannel, settings: CurrentSettings, quota: MutationQuota) -> None:
        self._controller = controller
        self._settings = settings
        self._quota = quota

    async def __call__(self, context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        if request.timeout_ms <= 0:
            return _refuse_all(request, ErrorCode.REQUEST_TIMED_OUT, None)
        charges = MutationCharges(self._quota, context, strict_since=STRICT_QUOTA_SINCE)
        # A topic that is named twice is refused before its partitions are charged. Otherwise one of the two could be
        # over the quota, and the controller would get only the other one.
        names = Counter(topic.name for topic in request.topics)
        alone = [topic for topic in request.topics if names[topic.name] == 1]
        repeated = tuple(CreatedTopic(name, DUPLICATE_NAME) for name, times in names.items() if times > 1)
        wanted = charges.allowed(tuple(map(_new_topic, alone)), self._partitions_of)
        try:
            created = await self._controller.submit(CreateTopics(tuple(wanted), request.validate_only))
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            return _refuse_all(request, refusal.code, refusal.message)
        failed = {topic.name for topic in created if topic.outcome.error is not ErrorCode.NONE}
        charges.give_back(self._partitions_of(topic) for topic in wanted if topic.name in failed)
        if len(wanted) < len(alone):
            outcomes = {topic.name: topic for topic in created}
            created = tuple(outcomes.get(topic.name) or _over_quota(topic) for topic in alone)
        results = _Results(self._settings.settings)
        return CreateTopicsResponse(
            throttle_time_ms=charges.throttle_time_ms, topics=tuple(map(results.of, (*created, *repeated)))
        )

    def _partitions_of(self, topic: NewTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        return topic.num_partitions if topic.num_partitions > 0 else self._settings.config.num_partitions


def _refuse_all(request: CreateTopicsRequest, code: ErrorCode, message: str | None) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=topic.name, error_code=code, error_message=message) for topic in request.topics
        )
    )


def _over_quota(topic: CreatableTopic) -> CreatedTopic:
    return CreatedTopic(topic.name, Outcome.of(EXCEEDED))


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments),
        tuple((config.name, config.value) for config in topic.configs),
    )


class _Results:
    """The results of a request. Most of its topics have the same configs, which are described once."""

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
                    value=configs.get(entry.name, entry.value),  # as it was sent, including spaces
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                )
                for entry in self._settings.describe_topic(configs)
            )
        return self._described[key]
