"""Offsets of groups without members: committed and asked for, with no retry hidden."""

from collections.abc import Mapping

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.peers.raw_client import RawClient

NAMES_TOPICS = 9  # the last version of OffsetCommit and OffsetFetch that says topics by name
NOWHERE = -1


def commit(client: RawClient, group: str, topic: str, offsets: Mapping[int, int]) -> int:
    """Commit for a group without members; the first error code, or 0."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=None)
        for number, offset in offsets.items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
    )
    answer = client.call(request, OffsetCommitResponse, NAMES_TOPICS)
    codes = (each.error_code for found in answer.topics for each in found.partitions)
    return next((code for code in codes if code), ErrorCode.NONE)


def committed(
    client: RawClient, group: str, topic: str, *partitions: int, stable: bool = True
) -> tuple[int, dict[int, int]]:
    """The first error code, or 0, and the offsets that came with it: -1 where there is none."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
    asked = OffsetFetchRequestGroup(group_id=group, member_id=None, topics=(wanted,))
    request = OffsetFetchRequest(groups=(asked,), require_stable=stable)
    found = client.call(request, OffsetFetchResponse, NAMES_TOPICS).groups[0]
    if found.error_code:
        return found.error_code, {}
    each_partition = found.topics[0].partitions
    code = next((each.error_code for each in each_partition if each.error_code), ErrorCode.NONE)
    return code, {each.partition_index: each.committed_offset for each in each_partition}
