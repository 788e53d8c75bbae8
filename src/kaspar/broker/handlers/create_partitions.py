"""CreatePartitions: the controller decides; the answer tells what became of each topic."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
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
        return CreatePartitionsResponse(
            results=tuple(
                CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.REQUEST_TIMED_OUT)
                for topic in request.topics
            )
        )
    event = CreatePartitions(tuple(map(_more_partitions, request.topics)), request.validate_only)
    outcomes = await broker.controller.submit(event)
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.outcome.error, error_message=topic.outcome.message
            )
            for topic in outcomes
        )
    )


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    if topic.assignments is None:
        return MorePartitions(topic.name, topic.count)
    return MorePartitions(topic.name, topic.count, tuple(each.broker_ids for each in topic.assignments))
