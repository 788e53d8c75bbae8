"""ElectLeaders: the controller elects; the response has the outcome of each partition."""

from kaspar.base.errors import Refused
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import ElectLeaders, PartitionOutcome
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


class ElectLeadersHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    async def __call__(self, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
        try:
            outcomes = await self._controller.submit(ElectLeaders(request.election_type, _partitions(request)))
        except Refused as refusal:
            return ElectLeadersResponse(error_code=refusal.code, replica_election_results=())
        by_topic: dict[str, list[PartitionResult]] = {each.topic: [] for each in request.topic_partitions or ()}
        for partition in outcomes:
            by_topic.setdefault(partition.topic, []).append(_result(partition))
        return ElectLeadersResponse(
            replica_election_results=tuple(
                ReplicaElectionResult(topic=topic, partition_result=tuple(results))
                for topic, results in by_topic.items()
            )
        )


def _partitions(request: ElectLeadersRequest) -> tuple[tuple[str, int], ...] | None:
    if request.topic_partitions is None:
        return None
    named = ((each.topic, number) for each in request.topic_partitions for number in each.partitions)
    return tuple(dict.fromkeys(named))


def _result(partition: PartitionOutcome) -> PartitionResult:
    return PartitionResult(
        partition_id=partition.partition,
        error_code=partition.outcome.error,
        error_message=partition.outcome.message,
    )
