"""DeleteTopics: by name, or by id in newer versions. The name is free at once; the logs go in the background."""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import DeleteTopics, TopicReference
from kaspar.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


FIRST_WITH_DELETION_DISABLED: Final = 3


async def handle(broker: "Broker", context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    references = tuple(TopicReference(name) for name in request.topic_names) + tuple(
        TopicReference(topic.name, topic.topic_id) for topic in request.topics
    )
    if request.timeout_ms <= 0:
        return _refuse_all(references, ErrorCode.REQUEST_TIMED_OUT, None)
    try:
        deletions = await broker.controller.submit(DeleteTopics(references))
    except Refused as refusal:  # by the metadata store: it is full, or not ours any longer
        return _refuse_all(references, refusal.code, refusal.message)
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(
                name=deletion.name,
                topic_id=deletion.topic_id,
                error_code=_known_code(deletion.outcome.error, context.version),
                error_message=deletion.outcome.message,
            )
            for deletion in deletions
        )
    )


def _known_code(code: ErrorCode, version: int) -> ErrorCode:
    """TOPIC_DELETION_DISABLED is younger than the oldest clients."""
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
