"""The offsets of logs: the first, the last, or that of a timestamp (KIP-79, KIP-396)."""

from collections.abc import Mapping
from enum import IntEnum

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.leaders import ask_leaders
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import ListedOffset, by_topic
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
_CLIENT = -1


class OffsetSpec(IntEnum):
    """What can stand in place of a timestamp."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the largest timestamp (KIP-734)."""
    EARLIEST_LOCAL = -4
    """The first that is not in remote storage alone (KIP-405)."""
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


def list_offsets(
    admin: Admin, wanted: Mapping[TopicPartition, int], *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, ListedOffset | Refused]:
    """The first offset at or after each timestamp, or that of an OffsetSpec; offset -1 where there is none."""

    def ask(leader: int, together: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | Refused]:
        request = ListOffsetsRequest(
            replica_id=_CLIENT,
            isolation_level=isolation_level,
            topics=tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=number, timestamp=together[TopicPartition(topic, number)])
                        for number in numbers
                    ),
                )
                for topic, numbers in by_topic(together).items()
            ),
            timeout_ms=admin.timeout_ms,
        )
        response = admin.client.request_broker(leader, request, ListOffsetsResponse)
        return {
            TopicPartition(topic.name, each.partition_index): refusal(each.error_code)
            or ListedOffset(each.offset, each.timestamp, each.leader_epoch)
            for topic in response.topics
            for each in topic.partitions
        }

    return ask_leaders(admin, "listOffsets(api=METADATA)", wanted, ask)
