"""--reset-offsets: determines the new offsets of the groups, and commits them."""

import argparse
import sys
import time
from collections.abc import Callable, Collection

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.groups import (
    WITHOUT_MEMBERS,
    GroupDescription,
    GroupType,
    describe_consumer_groups,
    list_groups,
)
from kaspar.client.admin.session import Admin
from kaspar.tools.command_line import CommandFailed, is_given, read_file
from kaspar.tools.consumer_groups.listing import group_ids_of
from kaspar.tools.consumer_groups.options import WrongOption, number, scenario_is_missing
from kaspar.tools.consumer_groups.plan import Plan, format_plan, parse_plan
from kaspar.tools.consumer_groups.scope import parse_partitions
from kaspar.tools.consumer_groups.tables import new_offset_table
from kaspar.tools.consumer_groups.targets import Targets, at_time, current, shifted, within_log
from kaspar.tools.kafka_errors import message_of
from kaspar.tools.log_offsets import ClusterLookups, GroupLookup, OffsetLookup, Offsets
from kaspar.tools.times import parse_datetime, parse_duration


def reset(admin: Admin, options: argparse.Namespace) -> None:
    group_ids = group_ids_of(admin, options)
    described = describe_consumer_groups(admin, group_ids)
    for group in described.values():
        if isinstance(group, Refused) and group.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise group
    streams = {each.group_id for each in list_groups(admin, types=[GroupType.STREAMS])}
    lookups = ClusterLookups(admin, group_ids)
    plan = {} if options.from_file is None else parse_plan(read_file(options.from_file), options.group)
    offsets: dict[str, Offsets] = {}
    for group_id in group_ids:
        problem = _why_not(group_id, described[group_id], is_streams=group_id in streams)
        if problem is not None:
            print(f"\nError: {problem}")
        offsets[group_id] = {} if problem is not None else _reset_group(admin, lookups, options, group_id, plan)
    if options.export:
        print(format_plan(offsets, with_group=len(options.group) != 1))
        return
    for line in new_offset_table(offsets):
        print(line)


def _why_not(group_id: str, group: GroupDescription | Refused, *, is_streams: bool) -> str | None:
    """Why the offsets of a group cannot be reset, or None. A group that does not exist is created by the commit."""
    if is_streams:
        return f"Group '{group_id}' is a streams group. Use kafka-streams-groups.sh to reset its offsets."
    if isinstance(group, Refused) or group.state in WITHOUT_MEMBERS:
        return None
    return (
        f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is {group.state}."
    )


def _reset_group(
    admin: Admin, lookups: ClusterLookups, options: argparse.Namespace, group_id: str, plan: Plan
) -> Offsets:
    partitions = _scope(lookups, options, group_id)
    _check_partitions(lookups, partitions)
    lookup = GroupLookup(lookups, group_id)
    offsets = (
        _new_offsets(options, lookup, partitions) if options.from_file is None else _planned(plan, lookup, group_id)
    )
    if options.execute:
        for refused in alter_group_offsets(admin, group_id, offsets).values():
            if refused is not None:
                raise CommandFailed(message_of(refused))
    return offsets


# --- which partitions -------------------------------------------------------------------------------------------------


def _scope(lookups: ClusterLookups, options: argparse.Namespace, group_id: str) -> list[TopicPartition]:
    if options.all_topics:
        return sorted(lookups.committed(group_id))
    if options.topic:
        partitions, topics = parse_partitions(options.topic)
        try:
            described = lookups.topics(topics)
        except Refused as refused:
            raise CommandFailed(message_of(refused)) from None
        return partitions + [TopicPartition(each.name, p.partition) for each in described for p in each.partitions]
    if options.from_file is None:
        raise WrongOption("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def _check_partitions(lookups: ClusterLookups, partitions: Collection[TopicPartition]) -> None:
    """Raise CommandFailed unless all partitions exist and have a leader."""
    leaders = {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in lookups.topics({where.topic for where in partitions})
        for each in topic.partitions
    }
    if missing := ",".join(str(where) for where in partitions if where not in leaders):
        raise CommandFailed(f'The partitions "{missing}" do not exist')
    if without := ",".join(str(where) for where in partitions if leaders[where] < 0):
        raise CommandFailed(f'The partitions "{without}" have no leader')


# --- which offsets ----------------------------------------------------------------------------------------------------


def _new_offsets(options: argparse.Namespace, lookup: OffsetLookup, partitions: Collection[TopicPartition]) -> Offsets:
    scenarios: dict[str, Callable[[], Targets]] = {
        "to-offset": lambda: within_log(lookup, dict.fromkeys(partitions, number(options, "to-offset"))),
        "to-earliest": lambda: Targets(lookup.earliest(partitions)),
        "to-latest": lambda: Targets(lookup.latest(partitions)),
        "shift-by": lambda: shifted(lookup, partitions, number(options, "shift-by")),
        "to-datetime": lambda: at_time(lookup, partitions, parse_datetime(options.to_datetime)),
        "by-duration": lambda: at_time(lookup, partitions, _now_ms() - parse_duration(options.by_duration)),
        "to-current": lambda: current(lookup, partitions),
    }
    for name, targets in scenarios.items():
        if is_given(options, name):
            return reported(targets())
    raise WrongOption(scenario_is_missing())


def _planned(plan: Plan, lookup: OffsetLookup, group_id: str) -> Offsets:
    if group_id not in plan:
        print(f"\nError: No reset plan for group {group_id} found")
        return {}
    return reported(within_log(lookup, plan[group_id]))


def reported(targets: Targets) -> Offsets:
    """The offsets. Prints a warning where they differ from the requested ones."""
    for where, wanted in targets.outside.items():
        found = targets.offsets[where]
        how = "higher than latest" if wanted > found else "lower than earliest"
        print(
            f"WARN New offset ({wanted}) is {how} offset for topic partition {where}. Value will be set to {found}.",
            file=sys.stderr,
        )
    for where in targets.ended:
        print(
            f"\nWarn: Partition {where.partition} from topic {where.topic} is empty. "
            "Falling back to latest known offset."
        )
    return targets.offsets


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
