"""Looks up the timestamps of records by offset. Only Kaspar's brokers support this."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, kaspar_only
from kaspar.protocol.messages.list_timestamps import (
    ListTimestampsPartition,
    ListTimestampsRequest,
    ListTimestampsResponse,
    ListTimestampsTopic,
)

_OFFSETS_PER_REQUEST: Final = 2_000


class RecordAt(NamedTuple):
    where: TopicPartition
    offset: int


def list_timestamps(admin: Admin, wanted: Collection[RecordAt]) -> dict[RecordAt, int]:
    """The timestamps, or NO_RECORD or NOT_LOOKED_UP (kaspar.protocol.messages.list_timestamps), of the records in
    partitions with a leader. Raises UnsupportedByPeer, and OSError if a leader cannot be reached."""
    by_leader: dict[int, list[RecordAt]] = defaultdict(list)
    for each in wanted:
        try:
            by_leader[admin.client.leader_of(each.where)].append(each)
        except Refused:  # the partition has no leader now
            continue
    found: dict[RecordAt, int] = {}
    for leader, positions in by_leader.items():
        for first in range(0, len(positions), _OFFSETS_PER_REQUEST):
            found.update(_ask(admin, leader, positions[first : first + _OFFSETS_PER_REQUEST]))
    return found


def _ask(admin: Admin, leader: int, positions: Sequence[RecordAt]) -> Iterator[tuple[RecordAt, int]]:
    topics: dict[str, dict[int, list[int]]] = {}
    for where, offset in positions:
        topics.setdefault(where.topic, {}).setdefault(where.partition, []).append(offset)
    request = ListTimestampsRequest(
        topics=tuple(
            ListTimestampsTopic(
                name=topic,
                partitions=tuple(
                    ListTimestampsPartition(partition_index=number, offsets=tuple(offsets))
                    for number, offsets in partitions.items()
                ),
            )
            for topic, partitions in topics.items()
        )
    )
    with kaspar_only(leader):
        response = admin.client.request_broker(leader, request, ListTimestampsResponse, version=0)
    for topic in response.topics:
        for each in topic.partitions:
            if each.error_code == ErrorCode.NONE:
                where = TopicPartition(topic.name, each.partition_index)
                asked = topics[topic.name][each.partition_index]
                for offset, timestamp in zip(asked, each.timestamps, strict=True):
                    yield RecordAt(where, offset), timestamp
