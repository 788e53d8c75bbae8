"""One group: its members, and the offsets that it has committed for each partition.

Offsets are read on request, with the rights of the caller. Statuses and lag in seconds are those of the monitor's last
round.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import GroupOffset, list_group_offsets
from kaspar.client.admin.groups import (
    WITHOUT_MEMBERS,
    GroupDescription,
    GroupListing,
    GroupMember,
    describe_consumer_groups,
    list_groups,
)
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.console.problems import NotThere
from kaspar.monitor.views import GroupLag, PartitionLag

_NOT_OF_CONSUMERS = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL})


@dataclass(frozen=True, slots=True)
class MemberView:
    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: Mapping[str, tuple[int, ...]]
    """The assigned partitions of each topic."""
    target_assignment: Mapping[str, tuple[int, ...]] | None
    """None for a member of a classic group."""
    member_epoch: int | None
    is_upgraded: bool | None


@dataclass(frozen=True, slots=True)
class PartitionView:
    topic: str
    partition: int
    committed_offset: int | None
    """None if nothing is committed for the partition, which is assigned to a member."""
    metadata: str
    end_offset: int | None
    """The high watermark. Like the stable offset, None if no leader reports it."""
    stable_offset: int | None
    lag: int | None
    stable_lag: int | None
    """The lag of a consumer that reads committed records only."""
    lag_seconds: float | None
    status: str | None
    owner: str | None
    """The client id of the member to which the partition is assigned."""


@dataclass(frozen=True, slots=True)
class GroupView:
    group_id: str
    type: str
    protocol_type: str
    state: str
    assignor: str
    coordinator: str
    """`broker 1 (host:port)`; empty if the coordinator is not known."""
    group_epoch: int | None
    target_assignment_epoch: int | None
    members: tuple[MemberView, ...]
    partitions: tuple[PartitionView, ...]
    total_lag: int
    max_lag_seconds: float | None
    status: str | None
    is_active: bool
    """Whether the group has members, which means that its offsets cannot be changed."""
    remark: str = ""
    """Why less is shown than for other groups."""


def describe_group(admin: Admin, group_id: str, lag: GroupLag | None) -> GroupView:
    """Read the members and offsets of a group. Raises Refused and NotThere."""
    described = find_group(admin, group_id)
    committed = accepted(list_group_offsets(admin, [group_id])[group_id])
    if isinstance(described, GroupListing):
        partitions = partition_views(admin, committed, {}, lag)
        return _listed_only(described, partitions, lag)
    owners = {where: each for each in described.members for where in each.assignment}
    partitions = partition_views(admin, committed, owners, lag)
    node = described.coordinator
    return GroupView(
        group_id,
        described.type,
        "" if described.is_simple else "consumer",
        described.state,
        described.assignor,
        f"broker {node.broker_id} ({node.host}:{node.port})",
        described.group_epoch,
        described.target_assignment_epoch,
        tuple(map(_member, sorted(described.members, key=lambda each: (each.client_id, each.member_id)))),
        partitions,
        sum(each.lag or 0 for each in partitions),
        None if lag is None else lag.max_lag_seconds,
        None if lag is None else lag.status.name,
        is_active(described),
    )


def find_group(admin: Admin, group_id: str) -> GroupDescription | GroupListing:
    """The description of a consumer group, or the listing of a group of another type. Raises Refused and NotThere."""
    described = describe_consumer_groups(admin, [group_id])[group_id]
    if not isinstance(described, Refused):
        if not (described.is_simple and described.state == "Dead"):  # before Kafka 4.0, a group that does not exist
            return described
    elif described.code not in _NOT_OF_CONSUMERS:
        raise described
    for each in list_groups(admin):
        if each.group_id == group_id:
            return each
    raise NotThere(f"There is no group {group_id}, or you may not see it.")


def is_active(group: GroupDescription | GroupListing) -> bool:
    return group.state not in WITHOUT_MEMBERS


def _listed_only(listing: GroupListing, partitions: tuple[PartitionView, ...], lag: GroupLag | None) -> GroupView:
    kind = listing.protocol_type or listing.type.lower()
    return GroupView(
        listing.group_id,
        listing.type,
        listing.protocol_type,
        listing.state,
        "",
        "",
        None,
        None,
        (),
        partitions,
        sum(each.lag or 0 for each in partitions),
        None if lag is None else lag.max_lag_seconds,
        None if lag is None else lag.status.name,
        is_active(listing),
        f"This group's protocol is {kind}, not consumer: its members are not shown.",
    )


def partition_views(
    admin: Admin,
    committed: Mapping[TopicPartition, GroupOffset],
    owners: Mapping[TopicPartition, GroupMember],
    lag: GroupLag | None,
) -> tuple[PartitionView, ...]:
    """All partitions that are committed or assigned, sorted."""
    partitions = sorted(committed.keys() | owners.keys())
    ends = _ends(admin, partitions, READ_UNCOMMITTED)
    stable = _ends(admin, partitions, READ_COMMITTED)
    known = {} if lag is None else {each.where: each for each in lag.partitions}
    return tuple(
        _partition(
            where,
            committed.get(where),
            ends.get(where),
            stable.get(where),
            known.get(where),
            owners.get(where),
        )
        for where in partitions
    )


def _ends(admin: Admin, partitions: Collection[TopicPartition], isolation_level: int) -> dict[TopicPartition, int]:
    """The end offsets of the partitions that have a leader and that the caller may describe."""
    if not partitions:
        return {}
    found = list_offsets(admin, dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=isolation_level)
    return {where: each.offset for where, each in found.items() if not isinstance(each, Refused)}


def _partition(
    where: TopicPartition,
    committed: GroupOffset | None,
    end: int | None,
    stable: int | None,
    known: PartitionLag | None,
    owner: GroupMember | None,
) -> PartitionView:
    offset = None if committed is None else committed.offset
    return PartitionView(
        where.topic,
        where.partition,
        offset,
        "" if committed is None else committed.metadata,
        end,
        stable,
        _behind(offset, end),
        _behind(offset, stable),
        None if known is None else known.lag_seconds,
        None if known is None else known.status.name,
        None if owner is None else owner.client_id,
    )


def _behind(offset: int | None, end: int | None) -> int | None:
    return None if offset is None or end is None else max(0, end - offset)


def _member(member: GroupMember) -> MemberView:
    return MemberView(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.host.removeprefix("/"),
        _by_topic(member.assignment),
        None if member.target_assignment is None else _by_topic(member.target_assignment),
        member.member_epoch,
        member.is_upgraded,
    )


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, tuple[int, ...]]:
    topics: dict[str, list[int]] = {}
    for where in sorted(partitions):
        topics.setdefault(where.topic, []).append(where.partition)
    return {topic: tuple(numbers) for topic, numbers in topics.items()}
