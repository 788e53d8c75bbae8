"""CreatePartitions: the controller decides; the response has the outcome of each topic."""

from collections import Counter
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers.mutation_charges import EXCEEDED, MutationCharges, MutationQuota
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import DUPLICATE_NAME, CreatePartitions, MorePartitions, NamedOutcome, Outcome
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_QUOTA_SINCE: Final = 3


class CreatePartitionsHandler:
    def __init__(self, controller: ControllerChannel, images: ImageSource, quota: MutationQuota) -> None:
        self._controller = controller
        self._images = images
        self._quota = quota

    async def __call__(self, context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        if request.timeout_ms <= 0:
            return _refuse_all(request, ErrorCode.REQUEST_TIMED_OUT, None)
        charges = MutationCharges(self._quota, context, strict_since=STRICT_QUOTA_SINCE)
        # A topic that is named twice is refused before its partitions are charged. Otherwise one of the two could be
        # over the quota, and the controller would get only the other one.
        names = Counter(topic.name for topic in request.topics)
        repeated = tuple(NamedOutcome(name, DUPLICATE_NAME) for name, times in names.items() if times > 1)
        topics = tuple(_more_partitions(topic) for topic in request.topics if names[topic.name] == 1)
        wanted = charges.allowed(topics, self._added)
        try:
            outcomes = await self._controller.submit(CreatePartitions(tuple(wanted), request.validate_only))
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            return _refuse_all(request, refusal.code, refusal.message)
        failed = {each.name for each in outcomes if each.outcome.error is not ErrorCode.NONE}
        charges.give_back(self._added(topic) for topic in wanted if topic.name in failed)
        if len(wanted) < len(topics):
            known = {each.name: each for each in outcomes}
            over = Outcome.of(EXCEEDED)
            outcomes = tuple(known.get(topic.name) or NamedOutcome(topic.name, over) for topic in topics)
        return CreatePartitionsResponse(
            throttle_time_ms=charges.throttle_time_ms,
            results=tuple(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=topic.outcome.error, error_message=topic.outcome.message
                )
                for topic in (*repeated, *outcomes)
            ),
        )

    def _added(self, topic: MorePartitions) -> int:
        known = self._images.current.topics.get(topic.name)
        return 0 if known is None else topic.count - len(known.partitions)


def _refuse_all(request: CreatePartitionsRequest, code: ErrorCode, message: str | None) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        )
    )


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    if topic.assignments is None:
        return MorePartitions(topic.name, topic.count)
    return MorePartitions(topic.name, topic.count, tuple(each.broker_ids for each in topic.assignments))
