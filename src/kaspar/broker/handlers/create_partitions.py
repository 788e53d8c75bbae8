"""CreatePartitions: the controller decides; the answer tells what became of each topic."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import CreatePartitions, MorePartitions
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(
    broker: "Broker", context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    if request.timeout_ms <= 0:
        return _refuse_all(request, ErrorCode.REQUEST_TIMED_OUT, None)
    event = CreatePartitions(tuple(map(_more_partitions, request.topics)), request.validate_only)
    try:
        outcomes = await broker.controller.submit(event)
    except Refused as refusal:  # by the metadata store: it is full, or not ours any longer
        return _refuse_all(request, refusal.code, refusal.message)
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.outcome.error, error_message=topic.outcome.message
            )
            for topic in outcomes
        )
    )


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
