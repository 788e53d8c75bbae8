"""DeleteTopics: by name, or by id in newer versions. The name is free at once; logs are deleted in the background."""

from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers.mutation_charges import EXCEEDED, MutationCharges, MutationQuota
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import DeleteTopics, Outcome, TopicDeletion, TopicReference
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

FIRST_WITH_DELETION_DISABLED: Final = 3
STRICT_QUOTA_SINCE: Final = 5


class DeleteTopicsHandler:
    def __init__(self, controller: ControllerChannel, images: ImageSource, quota: MutationQuota) -> None:
        self._controller = controller
        self._images = images
        self._quota = quota

    async def __call__(self, context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        references = tuple(TopicReference(name) for name in request.topic_names) + tuple(
            TopicReference(topic.name, topic.topic_id) for topic in request.topics
        )
        if request.timeout_ms <= 0:
            return _refuse_all(references, ErrorCode.REQUEST_TIMED_OUT, None)
        charges = MutationCharges(self._quota, context, strict_since=STRICT_QUOTA_SINCE)
        wanted = charges.allowed(references, self._partitions_of)
        try:
            deletions = await self._controller.submit(DeleteTopics(tuple(wanted)))
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            return _refuse_all(references, refusal.code, refusal.message)
        failed = [each for each in deletions if each.outcome.error is not ErrorCode.NONE]
        charges.give_back(self._partitions_of(TopicReference(each.name, each.topic_id)) for each in failed)
        if len(wanted) < len(references):
            deletions += tuple(
                TopicDeletion(each.name, each.topic_id, Outcome.of(EXCEEDED))
                for each in references
                if each not in wanted
            )
        return DeleteTopicsResponse(
            throttle_time_ms=charges.throttle_time_ms,
            responses=tuple(
                DeletableTopicResult(
                    name=deletion.name,
                    topic_id=deletion.topic_id,
                    error_code=_known_code(deletion.outcome.error, context.version),
                    error_message=deletion.outcome.message,
                )
                for deletion in deletions
            ),
        )

    def _partitions_of(self, reference: TopicReference) -> int:
        image = self._images.current
        topic = image.topic_by_id(reference.topic_id) if reference.name is None else image.topics.get(reference.name)
        return 0 if topic is None else len(topic.partitions)


def _known_code(code: ErrorCode, version: int) -> ErrorCode:
    """The code for this version: the oldest ones do not have TOPIC_DELETION_DISABLED."""
    if code is ErrorCode.TOPIC_DELETION_DISABLED and version < FIRST_WITH_DELETION_DISABLED:
        return ErrorCode.INVALID_REQUEST
    return code


def _refuse_all(references: tuple[TopicReference, ...], code: ErrorCode, message: str | None) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(
                name=reference.name, topic_id=reference.topic_id, error_code=code, error_message=message
            )
            for reference in references
        )
    )
