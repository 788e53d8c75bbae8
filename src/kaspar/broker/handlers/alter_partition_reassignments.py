"""AlterPartitionReassignments: the controller decides; the response has the outcome of each partition."""

from itertools import groupby
from operator import attrgetter
from typing import Final

from kaspar.base.errors import Refused
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import AlterReassignments, PartitionOutcome, Reassignment
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

NO_MESSAGE: Final = ""
"""Kafka's value instead of null if the request names no partition."""


class AlterPartitionReassignmentsHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    async def __call__(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        asked = tuple(
            Reassignment(topic.name, partition.partition_index, partition.replicas)
            for topic in request.topics
            for partition in topic.partitions
        )
        try:
            outcomes = await self._controller.submit(AlterReassignments(asked, request.allow_replication_factor_change))
        except Refused as refusal:
            return AlterPartitionReassignmentsResponse(
                error_code=refusal.code,
                error_message=refusal.message,
                allow_replication_factor_change=request.allow_replication_factor_change,
                responses=(),
            )
        return AlterPartitionReassignmentsResponse(
            error_message=None if asked else NO_MESSAGE,
            allow_replication_factor_change=request.allow_replication_factor_change,
            responses=tuple(
                ReassignableTopicResponse(name=name, partitions=tuple(map(_response, of_topic)))
                for name, of_topic in groupby(outcomes, attrgetter("topic"))  # in the order of the request
            ),
        )


def _response(partition: PartitionOutcome) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=partition.partition,
        error_code=partition.outcome.error,
        error_message=partition.outcome.message,
    )
