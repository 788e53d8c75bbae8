"""--reset-offsets: which offsets the groups get, and setting them."""

import argparse
import sys
import time
from collections.abc import Callable, Collection

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.client.admin.group_offsets import alter_group_offsets, list_group_offsets
from kaspar.client.admin.groups import GroupDescription, GroupType, describe_consumer_groups, list_groups
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics
from kaspar.tools.command_line import CommandFailed, read_file
from kaspar.tools.consumer_groups.listing import group_ids_of
from kaspar.tools.consumer_groups.options import WrongOption, given, number, scenario_is_missing
from kaspar.tools.consumer_groups.plan import format_plan, parse_plan
from kaspar.tools.consumer_groups.scope import parse_partitions
from kaspar.tools.consumer_groups.tables import new_offset_table
from kaspar.tools.kafka_errors import message_of
from kaspar.tools.log_offsets import ClusterOffsets, OffsetLookup, Offsets
from kaspar.tools.times import parse_datetime, parse_duration


def reset(admin: Admin, options: argparse.Namespace) -> None:
    group_ids = group_ids_of(admin, options)
    described = describe_consumer_groups(admin, group_ids)
    for group in described.values():
        if isinstance(group, Refused) and group.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise group
    streams = {each.group_id for each in list_groups(admin, types=[GroupType.STREAMS])}
    offsets: dict[str, Offsets] = {}
    for group_id in group_ids:
        problem = _why_not(group_id, described[group_id], is_streams=group_id in streams)
        if problem is not None:
            print(f"\nError: {problem}")
        offsets[group_id] = {} if problem is not None else _reset_group(admin, options, group_id)
    if options.export:
        print(format_plan(offsets, with_group=len(options.group) != 1))
        return
    for line in new_offset_table(offsets):
        print(line)


def _why_not(group_id: str, group: GroupDescription | Refused, *, is_streams: bool) -> str | None:
    """Why the offsets of a group cannot be reset, or None. A group that does not exist is created by its offsets."""
    if is_streams:
        return f"Group '{group_id}' is a streams group. Use kafka-streams-groups.sh to reset its offsets."
    if isinstance(group, Refused) or group.state in ("Empty", "Dead"):
        return None
    return (
        f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is {group.state}."
    )


def _reset_group(admin: Admin, options: argparse.Namespace, group_id: str) -> Offsets:
    lookup = ClusterOffsets(admin.client, group_id)
    partitions = _scope(admin, options, group_id)
    _check_partitions(admin, partitions)
    offsets = _new_offsets(options, lookup, group_id, partitions)
    if options.execute:
        for refused in alter_group_offsets(admin, group_id, offsets).values():
            if refused is not None:
                raise CommandFailed(message_of(refused))
    return offsets


# --- which partitions -------------------------------------------------------------------------------------------------


def _scope(admin: Admin, options: argparse.Namespace, group_id: str) -> list[TopicPartition]:
    if options.all_topics:
        committed = list_group_offsets(admin, [group_id])[group_id]
        if isinstance(committed, Refused):
            raise committed
        return sorted(committed)
    if options.topic:
        partitions, topics = parse_partitions(options.topic)
        try:
            described = _topics(admin, topics)
        except Refused as refused:
            raise CommandFailed(message_of(refused)) from None
        return partitions + [TopicPartition(each.name, p.partition) for each in described for p in each.partitions]
    if options.from_file is None:
        raise WrongOption("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def _check_partitions(admin: Admin, partitions: Collection[TopicPartition]) -> None:
    """They exist, and have a leader."""
    leaders = {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in _topics(admin, {where.topic for where in partitions})
        for each in topic.partitions
    }
    if missing := ",".join(str(where) for where in partitions if where not in leaders):
        raise CommandFailed(f'The partitions "{missing}" do not exist')
    if without := ",".join(str(where) for where in partitions if leaders[where] < 0):
        raise CommandFailed(f'The partitions "{without}" have no leader')


def _topics(admin: Admin, names: Collection[str]) -> list[TopicDescription]:
    found = []
    for topic in describe_topics(admin, names).values():
        if isinstance(topic, Refused):
            raise topic
        found.append(topic)
    return found


# --- which offsets ----------------------------------------------------------------------------------------------------


def _new_offsets(
    options: argparse.Namespace, lookup: OffsetLookup, group_id: str, partitions: Collection[TopicPartition]
) -> Offsets:
    scenarios: dict[str, Callable[[], Offsets]] = {
        "to-offset": lambda: within_log(lookup, dict.fromkeys(partitions, number(options, "to-offset"))),
        "to-earliest": lambda: lookup.earliest(partitions),
        "to-latest": lambda: lookup.latest(partitions),
        "shift-by": lambda: shifted(lookup, partitions, number(options, "shift-by")),
        "to-datetime": lambda: at_time(lookup, partitions, parse_datetime(options.to_datetime)),
        "by-duration": lambda: at_time(lookup, partitions, _now_ms() - parse_duration(options.by_duration)),
        "from-file": lambda: _planned(options, lookup, group_id),
        "to-current": lambda: {**lookup.latest(partitions), **_only(lookup.committed(), partitions)},
    }
    for name, offsets in scenarios.items():
        if given(options, name):
            return offsets()
    raise WrongOption(scenario_is_missing())


def within_log(lookup: OffsetLookup, wanted: Offsets) -> Offsets:
    """An offset outside of the log becomes its nearest end."""
    first, end = lookup.earliest(wanted.keys()), lookup.latest(wanted.keys())
    found = {}
    for where, offset in wanted.items():
        found[where] = min(max(offset, first[where]), end[where])
        if found[where] != offset:
            how = "higher than latest" if offset > end[where] else "lower than earliest"
            print(
                f"WARN New offset ({offset}) is {how} offset for topic partition {where}. "
                f"Value will be set to {found[where]}.",
                file=sys.stderr,
            )
    return found


def shifted(lookup: OffsetLookup, partitions: Collection[TopicPartition], by: int) -> Offsets:
    committed = lookup.committed()
    for where in partitions:
        if where not in committed:
            raise WrongOption(f"Cannot shift offset for partition {where} since there is no current committed offset")
    return within_log(lookup, {where: committed[where] + by for where in partitions})


def at_time(lookup: OffsetLookup, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
    """Partitions without a record since then are reset to their ends."""
    found = lookup.at(partitions, timestamp_ms)
    ended = [where for where in partitions if found[where] == NO_OFFSET]
    for where in ended:
        print(
            f"\nWarn: Partition {where.partition} from topic {where.topic} is empty. "
            "Falling back to latest known offset."
        )
    return {**found, **(lookup.latest(ended) if ended else {})}


def _planned(options: argparse.Namespace, lookup: OffsetLookup, group_id: str) -> Offsets:
    plan = parse_plan(read_file(options.from_file), options.group)
    if group_id not in plan:
        print(f"\nError: No reset plan for group {group_id} found")
        return {}
    return within_log(lookup, plan[group_id])


def _only(offsets: Offsets, partitions: Collection[TopicPartition]) -> Offsets:
    return {where: offset for where, offset in offsets.items() if where in set(partitions)}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
