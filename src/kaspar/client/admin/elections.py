"""Elects partition leaders: the preferred replica, or any replica that is up (KIP-460)."""

from collections.abc import Collection
from enum import IntEnum

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.offsets import by_topic
from kaspar.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    admin: Admin, election_type: ElectionType, partitions: Collection[TopicPartition] | None
) -> dict[TopicPartition, Refused | None]:
    """Elect leaders of these partitions, or of all (None). For all partitions, the result has only those that needed an
    election; for named partitions, the others are refused with ELECTION_NOT_NEEDED."""
    topics = None
    if partitions is not None:
        topics = tuple(
            TopicPartitions(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic(partitions).items()
        )
    response = admin.ask_controller(
        "electLeaders",
        ElectLeadersRequest(election_type=election_type, topic_partitions=topics, timeout_ms=admin.timeout_ms),
        ElectLeadersResponse,
    )
    refuse(response.error_code)
    return {
        TopicPartition(result.topic, each.partition_id): refusal(each.error_code, each.error_message)
        for result in response.replica_election_results
        for each in result.partition_result
    }
