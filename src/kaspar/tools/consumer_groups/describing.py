"""--describe: offsets and lags, members, or states of groups."""

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import GroupOffset, list_group_offsets
from kaspar.client.admin.groups import GroupDescription, describe_consumer_groups
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.tools.consumer_groups.listing import group_ids_of
from kaspar.tools.consumer_groups.tables import OffsetRow, member_table, offset_table, state_table
from kaspar.tools.log_offsets import ClusterLookups

_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def describe(admin: Admin, options: argparse.Namespace) -> None:
    groups = _described(admin, group_ids_of(admin, options))
    if options.members:
        for group in groups:
            _say_state(group)
            _print(member_table(group, verbose=options.verbose))
    elif options.state is not None:
        for group in groups:
            if _say_state(group):
                _print(state_table(group, verbose=options.verbose))
    else:
        _describe_offsets(admin, groups, verbose=options.verbose)


def _described(admin: Admin, group_ids: Collection[str]) -> list[GroupDescription]:
    """The groups, ordered by name. Raises the first Refused of a group that cannot be described."""
    described = describe_consumer_groups(admin, group_ids)
    return [accepted(described[group_id]) for group_id in sorted(group_ids)]


def _say_state(group: GroupDescription) -> bool:
    """Whether there is anything to show for the group. Prints a notice about its state."""
    if group.state == "Dead":
        print(f"\nError: Consumer group '{group.group_id}' does not exist.")
        return False
    if group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in _REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
    return True


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)


# --- offsets ----------------------------------------------------------------------------------------------------------


def _describe_offsets(admin: Admin, groups: Collection[GroupDescription], *, verbose: bool) -> None:
    found = list_group_offsets(admin, [group.group_id for group in groups])
    committed = {group_id: accepted(offsets) for group_id, offsets in found.items()}
    partitions = {where for offsets in committed.values() for where in offsets}
    partitions |= {where for group in groups for member in group.members for where in member.assignment}
    ends = _log_end_offsets(admin, partitions)
    for group in groups:
        rows = offset_rows(group, committed[group.group_id], ends)
        if _say_state(group) and rows:
            _print(offset_table(rows, verbose=verbose))


def _log_end_offsets(admin: Admin, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
    """The log end offsets of the partitions that have a leader. All groups are looked up together."""
    lookups = ClusterLookups(admin, ())
    with_leader = {
        TopicPartition(topic.name, each.partition)
        for topic in lookups.topics({where.topic for where in partitions})
        for each in topic.partitions
        if each.leader >= 0
    }
    return lookups.listed([where for where in partitions if where in with_leader], LATEST_TIMESTAMP)


def offset_rows(
    group: GroupDescription,
    committed: Mapping[TopicPartition, GroupOffset],
    log_end_offsets: Mapping[TopicPartition, int],
) -> list[OffsetRow]:
    """The partitions of members, starting with the member that has the most, then other partitions with an offset."""

    def row(where: TopicPartition, *member: str) -> OffsetRow:
        offset = committed.get(where)
        return OffsetRow(
            group.group_id,
            where,
            None if offset is None else offset.leader_epoch,
            None if offset is None else offset.offset,
            log_end_offsets.get(where),
            *member,
        )

    rows = [
        row(where, member.member_id, member.host, member.client_id)
        for member in sorted(group.members, key=lambda each: -len(each.assignment))
        for where in sorted(member.assignment)
    ]
    assigned = {each.partition for each in rows}
    return rows + [row(where) for where in sorted(committed) if where not in assigned]
