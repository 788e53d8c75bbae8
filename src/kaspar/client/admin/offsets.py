"""Lists offsets of partitions: the first, the last, or the offset for a timestamp (KIP-79, KIP-396)."""

from collections.abc import Mapping
from enum import IntEnum

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.leaders import ask_leaders
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import READ_UNCOMMITTED, ListedOffset, ask_offsets


class OffsetSpec(IntEnum):
    """Special values instead of a timestamp."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the largest timestamp (KIP-734)."""
    EARLIEST_LOCAL = -4
    """The first offset that is not only in remote storage (KIP-405)."""
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


def list_offsets(
    admin: Admin, wanted: Mapping[TopicPartition, int], *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, ListedOffset | Refused]:
    """The first offset at or after each timestamp, or the offset for an OffsetSpec; -1 if there is none."""

    def ask(leader: int, together: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | Refused]:
        found = ask_offsets(admin.client, leader, together, isolation_level, admin.timeout_ms)
        results: dict[TopicPartition, ListedOffset | Refused] = {}
        for where, each in found.items():
            results[where] = each if isinstance(each, ListedOffset) else refusal(each) or ListedOffset()
        return results

    return ask_leaders(admin, "listOffsets(api=METADATA)", wanted, ask)
