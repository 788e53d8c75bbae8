"""Offsets under test: short forms of requests, a scripted group, and the results."""

import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from kaspar.base.ids import ZERO_UUID
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import StoredRecord
from kaspar.groups.counts import GroupCounts
from kaspar.groups.group import OffsetsOwner, PartitionCheck
from kaspar.groups.offsets.commits import DecodedCommit
from kaspar.groups.offsets.committed import Expired, Offsets
from kaspar.groups.records import OffsetCommitKey, OffsetCommitValue
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
)
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "group"
TOPIC = "topic"
NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
RETENTION_MINUTES = 100
NO_OFFSET = -1


@dataclass
class SomeGroup:
    """A group that is what a test says."""

    group_id: str = GROUP
    subscribed: Collection[str] = ()
    expire_from: int | None = NOW_MS

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        return self.expire_from


def make_offsets(*, offset_metadata_max_bytes: int = 4096) -> Offsets:
    return Offsets(
        GroupSettings(offsets_retention_minutes=RETENTION_MINUTES, offset_metadata_max_bytes=offset_metadata_max_bytes),
        GroupCounts(),
    )


def commit_request(
    *partitions: tuple[int, int],
    group: str = GROUP,
    topic: str = TOPIC,
    topic_id: uuid.UUID = ZERO_UUID,
    metadata: str | None = "",
    leader_epoch: int = -1,
    retention_time_ms: int = -1,
) -> OffsetCommitRequest:
    """A commit of (partition, offset) pairs."""
    wanted = tuple(
        OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for partition, offset in partitions
    )
    return OffsetCommitRequest(
        group_id=group,
        member_id="",
        retention_time_ms=retention_time_ms,
        topics=(OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=wanted),),
    )


def commit_in_transaction_request(
    *partitions: tuple[int, int], group: str = GROUP, topic: str = TOPIC, metadata: str | None = ""
) -> TxnOffsetCommitRequest:
    wanted = tuple(
        TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=metadata)
        for partition, offset in partitions
    )
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group,
        producer_id=1,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=wanted),),
    )


def delete_request(*partitions: int, group: str = GROUP, topic: str = TOPIC) -> OffsetDeleteRequest:
    wanted = tuple(OffsetDeleteRequestPartition(partition_index=partition) for partition in partitions)
    return OffsetDeleteRequest(group_id=group, topics=(OffsetDeleteRequestTopic(name=topic, partitions=wanted),))


def replay(offsets: Offsets, records: Iterable[StoredRecord], producer_id: int | None = None) -> None:
    for key, value in records:
        assert isinstance(key, OffsetCommitKey)
        assert value is None or isinstance(value, OffsetCommitValue)
        offsets.replay(key, value, producer_id)


def decide(
    offsets: Offsets, request: OffsetCommitRequest, check: PartitionCheck | None = None, now_ms: int = NOW_MS
) -> tuple[list[StoredRecord], OffsetCommitResponse]:
    commit = DecodedCommit(request, api_version=9)
    decision = commit.decide(check, now_ms, offsets.max_metadata_bytes, offsets.replay_single)
    assert isinstance(decision.response, OffsetCommitResponse)
    return [record for record in decision.records if isinstance(record, StoredRecord)], decision.response


def commit(offsets: Offsets, request: OffsetCommitRequest, now_ms: int = NOW_MS) -> OffsetCommitResponse:
    records, response = decide(offsets, request, None, now_ms)
    replay(offsets, records)
    return response


def commit_in_transaction(
    offsets: Offsets, producer_id: int, request: TxnOffsetCommitRequest, now_ms: int = NOW_MS
) -> None:
    records, _ = offsets.commit_in_transaction(request, None, now_ms)
    replay(offsets, records, producer_id)


def fetch(
    offsets: Offsets,
    *partitions: int,
    group: str = GROUP,
    topic: str = TOPIC,
    topic_id: uuid.UUID = ZERO_UUID,
    require_stable: bool = False,
) -> list[OffsetFetchResponsePartitions]:
    """These partitions of one topic, as OffsetFetch returns them."""
    wanted = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=partitions)
    request = OffsetFetchRequestGroup(group_id=group, topics=(wanted,))
    response = offsets.fetch(request, require_stable=require_stable)
    assert (response.group_id, response.error_code) == (group, 0)
    (fetched,) = response.topics
    assert (fetched.name, fetched.topic_id) == (topic, topic_id)
    return list(fetched.partitions)


def fetch_all(
    offsets: Offsets, *, group: str = GROUP, require_stable: bool = False
) -> dict[tuple[str, int], OffsetFetchResponsePartitions]:
    request = OffsetFetchRequestGroup(group_id=group, topics=None)
    response = offsets.fetch(request, require_stable=require_stable)
    return {
        (topic.name, partition.partition_index): partition
        for topic in response.topics
        for partition in topic.partitions
    }


def offset_of(offsets: Offsets, partition: int = 0, *, group: str = GROUP, topic: str = TOPIC) -> int:
    (fetched,) = fetch(offsets, partition, group=group, topic=topic)
    return fetched.committed_offset


def deleted(records: Iterable[StoredRecord]) -> set[tuple[str, str, int]]:
    """The places that these tombstones name."""
    found = set()
    for key, value in records:
        assert isinstance(key, OffsetCommitKey)
        assert value is None
        found.add((key.group, key.topic, key.partition))
    return found


def expire(offsets: Offsets, group: OffsetsOwner, now_ms: int) -> Expired:
    """All that the group has committed, in one go."""
    return offsets.expire(group, offsets.pieces_of(group.group_id), now_ms, at_most=sys.maxsize)


def topics_deleted(offsets: Offsets, successors: Mapping[str, uuid.UUID]) -> list[StoredRecord]:
    """Of all groups, in one go. All topics of these names are gone, but for those with these ids."""
    records: dict[StoredRecord, None] = {}
    for group_id in offsets.groups_with_offsets():
        records.update(dict.fromkeys(offsets.pending_for(group_id, successors)))
        for piece in offsets.pieces_of(group_id, successors):
            records.update(dict.fromkeys(offsets.topic_deleted(group_id, piece, _other_than(successors[piece.topic]))))
    return list(records)


def _other_than(successor: uuid.UUID) -> Callable[[uuid.UUID], bool]:
    return lambda topic_id: topic_id == ZERO_UUID or topic_id != successor
