"""ListPartitionReassignments: replicas are never moved, so there is nothing to list, of unknown topics neither."""

from typing import TYPE_CHECKING

from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(
    broker: "Broker", context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(topics=())
