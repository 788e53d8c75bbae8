"""Lists, changes and deletes the committed offsets of groups (KIP-396, KIP-496, KIP-709)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, NO_OFFSET, TopicPartition
from kaspar.client.admin.coordinators import CoordinatorNode, ask_coordinators
from kaspar.client.admin.session import Admin, accepted, refusal
from kaspar.client.coordinators import CoordinatorKind
from kaspar.client.offsets import by_topic, commit_offsets
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

_MANY_GROUPS: Final = 8
"""The first version of OffsetFetch that takes many groups (KIP-709). From 10 on it has topic ids instead of names."""


@dataclass(frozen=True, slots=True)
class GroupOffset:
    offset: int
    """The offset of the next record to read."""
    leader_epoch: int | None
    metadata: str


GroupOffsets = dict[TopicPartition, GroupOffset]


def list_group_offsets(admin: Admin, group_ids: Collection[str]) -> dict[str, GroupOffsets | Refused]:
    """The committed offsets of each group, for all of its topics; empty for a group that does not exist."""

    def ask(node: CoordinatorNode, together: Sequence[str]) -> dict[str, GroupOffsets | Refused]:
        asked = tuple(OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in together)
        request = OffsetFetchRequest(groups=asked)
        response = admin.client.request_at(node.address, request, OffsetFetchResponse, _MANY_GROUPS)
        return {each.group_id: _committed(each) for each in response.groups}

    return ask_coordinators(admin, "listConsumerGroupOffsets", CoordinatorKind.GROUP, group_ids, ask)


def _committed(group: OffsetFetchResponseGroup) -> GroupOffsets | Refused:
    if (refused := refusal(group.error_code)) is not None:
        return refused
    offsets: GroupOffsets = {}
    for topic in group.topics:
        for each in topic.partitions:
            if each.error_code == ErrorCode.NONE and each.committed_offset != NO_OFFSET:
                epoch = None if each.committed_leader_epoch == NO_EPOCH else each.committed_leader_epoch
                where = TopicPartition(topic.name, each.partition_index)
                offsets[where] = GroupOffset(each.committed_offset, epoch, each.metadata or "")
    return offsets


def alter_group_offsets(
    admin: Admin, group_id: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Refused | None]:
    """Set offsets of a group without members. Returns for each why it was not set, or None. Raises Refused."""
    codes = admin.retry(
        "alterConsumerGroupOffsets(api=FIND_COORDINATOR)",
        lambda: commit_offsets(admin.client, group_id, offsets),
    )
    return {where: refusal(codes.get(where, ErrorCode.NONE)) for where in offsets}


def delete_group_offsets(
    admin: Admin, group_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Refused | None]:
    """Delete offsets. Returns for each partition why its offset was not deleted, or None. Raises Refused for errors of
    the whole group.
    """
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for number in numbers),
            )
            for topic, numbers in by_topic(partitions).items()
        ),
    )

    def ask(node: CoordinatorNode, together: Sequence[str]) -> dict[str, OffsetDeleteResponse | Refused]:
        response = admin.client.request_at(node.address, request, OffsetDeleteResponse)
        return dict.fromkeys(together, refusal(response.error_code) or response)

    response = accepted(ask_coordinators(admin, "offsetDelete", CoordinatorKind.GROUP, [group_id], ask)[group_id])
    return {
        TopicPartition(topic.name, each.partition_index): refusal(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
