"""DeleteTopics: by name, or by id in newer versions. The name is free at once; the logs go in the background."""

from typing import TYPE_CHECKING

from kaspar.base.errors import Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import DeleteTopics, TopicReference
from kaspar.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    references = tuple(TopicReference(name) for name in request.topic_names) + tuple(
        TopicReference(topic.name, topic.topic_id) for topic in request.topics
    )
    try:
        deletions = await broker.controller.submit(DeleteTopics(references))
    except Refused as refusal:  # by the metadata store: it is full, or not ours any longer
        results = (
            DeletableTopicResult(
                name=reference.name,
                topic_id=reference.topic_id,
                error_code=refusal.code,
                error_message=refusal.message,
            )
            for reference in references
        )
        return DeleteTopicsResponse(responses=tuple(results))
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(
                name=deletion.name,
                topic_id=deletion.topic_id,
                error_code=deletion.outcome.error,
                error_message=deletion.outcome.message,
            )
            for deletion in deletions
        )
    )
