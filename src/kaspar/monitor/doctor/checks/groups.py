"""Consumer groups: whether they keep up, according to the rules of kaspar.monitor.lag applied to the observations."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.base.sentences import counted, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks, topics_of, total_lag
from kaspar.monitor.lag.rules import had_no_lag, has_stalled, lag_never_decreased

LOOKS: Final = 3
LOOK_S: Final = 20.0
"""Consumers commit every five seconds by default: fewer or closer looks would report a consumer between two commits."""
_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


@check(
    "group-behind",
    Severity.WARNING,
    title="A group is falling behind",
    why="Records arrive faster than the group reads them: its lag grows until retention deletes unread records.",
    remedy="Start more consumers, up to the number of partitions; beyond that, add partitions or speed up the "
    "consumers.",
)
def group_behind(looks: Looks) -> Iterator[Fault]:
    for group_id in sorted(looks.last.groups):
        behind = [where for where in _lagging(looks, group_id) if _grows(looks, group_id, where)]
        if behind:
            yield Fault(
                f"group {group_id}",
                _growth(looks, group_id, behind),
                _more_readers(looks, group_id, behind),
                topics_of(behind),
            )


def _growth(looks: Looks, group_id: str, behind: list[TopicPartition]) -> str:
    """The growth of the lag since each partition's first commit was seen: the group may be newer than the first
    look."""
    commits = [looks.commits(group_id, where) for where in behind]
    first, last = sum(each[0].lag for each in commits), sum(each[-1].lag for each in commits)
    span_s = (looks.last.at_ms - min(each[0].at_ms for each in commits)) / 1000
    return (
        f"Its lag grew from {first:,} to {last:,} records in {span_s:.0f} s, on "
        f"{counted(len(behind), 'partition')}: {some(behind)}."
    )


def _more_readers(looks: Looks, group_id: str, behind: list[TopicPartition]) -> str:
    """A command that adds partitions, if each already has its own consumer; otherwise one that describes the group."""
    group, topic = looks.last.groups[group_id], behind[0].topic
    partitions = len(looks.last.topics[topic].partitions) if topic in looks.last.topics else 0
    if group.members and 0 < partitions <= group.members:
        return looks.access.kaspar("topic", "add-partitions", topic, "--to", str(2 * partitions))
    return looks.access.kaspar("group", "describe", group_id)


@check(
    "group-stalled",
    Severity.WARNING,
    title="A group has members but makes no progress",
    why="A consumer owns partitions but commits nothing: it hangs, keeps failing on the same record, or does not "
    "commit.",
    remedy="Check the consumer's log and restart it. To skip a record that it cannot process, use kaspar group seek.",
)
def group_stalled(looks: Looks) -> Iterator[Fault]:
    for group_id in sorted(looks.last.groups):
        stalled = [where for where in _lagging(looks, group_id) if has_stalled(looks.commits(group_id, where))]
        if stalled and _always_has_members(looks, group_id):
            detail = (
                f"No offset was committed in {looks.span_s:.0f} s, although there are records to read, on "
                f"{counted(len(stalled), 'partition')}: {some(stalled)}."
            )
            command = looks.access.kaspar("group", "describe", group_id)
            yield Fault(f"group {group_id}", detail, command, topics_of(stalled))


def _always_has_members(looks: Looks, group_id: str) -> bool:
    return looks.always(lambda each: group_id in each.groups and each.groups[group_id].has_members)


def _lagging(looks: Looks, group_id: str) -> Iterator[TopicPartition]:
    """The partitions that had lag at every look; none if there were not enough looks."""
    if looks.span_s < LOOK_S:
        return
    for where in sorted(looks.last.groups[group_id].committed):
        commits = looks.commits(group_id, where)
        if len(commits) >= LOOKS and not had_no_lag(commits):
            yield where


def _grows(looks: Looks, group_id: str, where: TopicPartition) -> bool:
    commits = looks.commits(group_id, where)
    is_moving = not has_stalled(commits) and not commits[-1].kept_up
    return is_moving and lag_never_decreased(commits) and commits[-1].unread > commits[0].unread


@check(
    "group-without-members",
    Severity.NOTE,
    title="A group has unread records but no members",
    why="Its consumers may have stopped, or the group is left over from a trial.",
    remedy="Start its consumers, or delete the group if it is no longer needed.",
)
def group_without_members(looks: Looks) -> Iterator[Fault]:
    for group_id, group in sorted(looks.last.groups.items()):
        lag = total_lag(looks.last, group_id)
        if group.state == "Empty" and lag > 0:
            detail = f"It is {counted(lag, 'record')} behind, on {counted(len(group.committed), 'partition')}."
            # Not "group delete": a group that is only stopped would lose its offsets.
            yield Fault(f"group {group_id}", detail, looks.access.kaspar("group", "describe", group_id))


@check(
    "group-rebalancing",
    Severity.WARNING,
    title="A group keeps rebalancing",
    why="Consumers read little or nothing during a rebalance. Members that come and go, or exceed "
    "max.poll.interval.ms between polls, keep triggering one.",
    remedy="Check the members' logs; raise max.poll.interval.ms or lower max.poll.records, or use static membership.",
)
def group_rebalancing(looks: Looks) -> Iterator[Fault]:
    if len(looks.observations) < LOOKS or looks.span_s < LOOK_S:
        return
    for group_id in sorted(looks.last.groups):
        states = [each.groups[group_id].state for each in looks.observations if group_id in each.groups]
        if len(states) == len(looks.observations) and set(states) <= _REBALANCING:
            detail = f"It was {states[-1]} in each of {len(states)} observations in {looks.span_s:.0f} s."
            yield Fault(f"group {group_id}", detail, looks.access.kaspar("group", "describe", group_id))


@check(
    "idle-members",
    Severity.NOTE,
    title="A group has more members than partitions",
    why="Each partition is assigned to one member; the remaining members are idle. Fine as standby capacity.",
    remedy="Add partitions if the group needs more throughput.",
)
def idle_members(looks: Looks) -> Iterator[Fault]:
    for group_id, group in sorted(looks.last.groups.items()):
        if group.idle_members and group.members and group.state == "Stable":
            topics = topics_of(group.committed)
            command = looks.access.kaspar("group", "describe", group_id)
            if len(topics) == 1:
                command = looks.access.kaspar("topic", "add-partitions", topics[0], "--to", str(group.members))
            detail = f"{group.idle_members} of {counted(group.members, 'member')} have no partition."
            yield Fault(f"group {group_id}", detail, command, topics)
