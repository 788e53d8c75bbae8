"""Resets the offsets of a group: previews every move, and then makes exactly the moves that were shown.

Kafka has no conditional commit, so the moves are compared with the current state right before they are committed. They
are rejected if the group has become active, if a committed offset is no longer the one that was shown, or if a new
offset is no longer in the log.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.sentences import some
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.groups import GroupDescription, GroupListing, GroupType
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import describe_topics_by_metadata
from kaspar.console.groups.describing import find_group, is_active
from kaspar.console.problems import Conflict, NotThere, Unacceptable
from kaspar.tools.consumer_groups.targets import Targets, at_time, shifted, within_log
from kaspar.tools.log_offsets import ClusterLookups, GroupLookup, OffsetLookup


class TargetKind(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    """Move to the first record at or after a time, in milliseconds since 1970."""
    DURATION = "duration"
    """Move to the first record of the last `value` milliseconds."""
    SHIFT = "shift"
    """Move by a number of records, backward if it is negative."""
    OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class Target:
    kind: TargetKind
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    topic: str
    partitions: tuple[int, ...] | None = None
    """None for all partitions of the topic."""


@dataclass(frozen=True, slots=True)
class Move:
    topic: str
    partition: int
    old: int | None
    """The committed offset; None if there is none."""
    new: int

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class PlannedMove:
    move: Move
    log_start_offset: int
    end_offset: int
    skipped: int
    """At most this many records will not be read: the offsets of compacted topics and transactions have gaps."""
    read_again: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    group_id: str
    moves: tuple[PlannedMove, ...]
    skipped: int
    read_again: int
    refusal: str | None
    """Why the moves cannot be made now; None if they can."""


def preview(admin: Admin, group_id: str, target: Target, scopes: Sequence[Scope], *, now_ms: int) -> Preview:
    """The moves to this target. Without scopes, of all partitions that the group has committed. Raises Refused,
    NotThere, Unacceptable and Conflict."""
    group = find_group(admin, group_id)
    lookups = ClusterLookups(admin, [group_id])
    committed = lookups.committed(group_id)
    leaders = _leaders(admin, {each.topic for each in scopes} or {where.topic for where in committed})
    # Committed offsets may belong to deleted topics.
    partitions = _chosen(leaders, scopes) if scopes else sorted(where for where in committed if where in leaders)
    if not partitions:
        raise Unacceptable(f"The group {group_id} has no committed offsets: choose a topic.")
    _check_leaders(leaders, partitions)
    lookup = GroupLookup(lookups, group_id)
    moves = planned(lookup, partitions, targets_of(lookup, partitions, target, now_ms))
    return Preview(
        group_id,
        moves,
        sum(each.skipped for each in moves),
        sum(each.read_again for each in moves),
        why_not(group),
    )


def execute(admin: Admin, group_id: str, moves: Sequence[Move]) -> None:
    """Make all of these moves, or none. Raises Refused, NotThere, Unacceptable and Conflict."""
    if not moves:
        raise Unacceptable("There are no offsets to reset.")
    if (refusal := why_not(find_group(admin, group_id))) is not None:
        raise Conflict(refusal)
    lookups = ClusterLookups(admin, [group_id])
    partitions = {each.where for each in moves}
    if len(partitions) < len(moves):
        raise Unacceptable("A partition is given twice.")
    _check_leaders(_leaders(admin, {where.topic for where in partitions}), partitions)
    check_moves(GroupLookup(lookups, group_id), moves)
    results = alter_group_offsets(admin, group_id, {each.where: each.new for each in moves})
    for refused in results.values():
        if refused is not None:
            raise refused


# --- decisions --------------------------------------------------------------------------------------------------------


def why_not(group: GroupDescription | GroupListing) -> str | None:
    """A sentence that says why the offsets of a group cannot be reset; None if they can."""
    if group.type in (GroupType.SHARE, GroupType.STREAMS):
        return f"{group.group_id} is a {group.type.lower()} group: its offsets cannot be reset here."
    if not is_active(group):
        return None
    who = ""
    if isinstance(group, GroupDescription) and group.members:
        who = f", with the members {some(sorted({each.client_id for each in group.members}))}"
    return f"The group is active (its state is {group.state}{who}). Stop its members first, then reset its offsets."


def targets_of(lookup: OffsetLookup, partitions: Collection[TopicPartition], target: Target, now_ms: int) -> Targets:
    """The new offsets of the partitions. Raises Unacceptable."""
    match target.kind:
        case TargetKind.EARLIEST:
            return Targets(lookup.earliest(partitions))
        case TargetKind.LATEST:
            return Targets(lookup.latest(partitions))
        case TargetKind.TIME:
            return at_time(lookup, partitions, _at_least_zero(target, "The time"))
        case TargetKind.DURATION:
            return at_time(lookup, partitions, max(0, now_ms - _at_least_zero(target, "The duration")))
        case TargetKind.SHIFT:
            committed = lookup.committed()
            if missing := [str(where) for where in partitions if where not in committed]:
                raise Unacceptable(f"No offsets are committed for {some(missing)}, so they cannot be shifted.")
            return shifted(lookup, partitions, _value(target, "The number of records"))
        case TargetKind.OFFSET:
            return within_log(lookup, dict.fromkeys(partitions, _at_least_zero(target, "The offset")))
        case other:
            assert_never(other)


def planned(lookup: OffsetLookup, partitions: Collection[TopicPartition], targets: Targets) -> tuple[PlannedMove, ...]:
    """The moves, sorted by partition, with the number of records that consumers will skip or read again."""
    starts, ends, committed = lookup.earliest(partitions), lookup.latest(partitions), lookup.committed()
    moves = []
    for where in sorted(partitions):
        old, new = committed.get(where), targets.offsets[where]
        moves.append(
            PlannedMove(
                Move(where.topic, where.partition, old, new),
                starts[where],
                ends[where],
                0 if old is None else max(0, new - max(old, starts[where])),
                0 if old is None else max(0, min(old, ends[where]) - new),
                _remark(where, targets),
            )
        )
    return tuple(moves)


def check_moves(lookup: OffsetLookup, moves: Sequence[Move]) -> None:
    """Raises Conflict if the moves do not match the committed offsets or the log any more."""
    committed = lookup.committed()
    if changed := [each for each in moves if committed.get(each.where) != each.old]:
        names = some(each.where for each in changed)
        raise Conflict(f"The committed offsets of {names} have changed since the preview: preview the reset again.")
    partitions = [each.where for each in moves]
    starts, ends = lookup.earliest(partitions), lookup.latest(partitions)
    if outside := [each for each in moves if not starts[each.where] <= each.new <= ends[each.where]]:
        names = some(each.where for each in outside)
        raise Conflict(f"The new offsets of {names} are no longer in the log: preview the reset again.")


def _remark(where: TopicPartition, targets: Targets) -> str:
    if where in targets.ended:
        return "no record since then: moved to the end"
    if (wanted := targets.outside.get(where)) is None:
        return ""
    nearest = "end" if wanted > targets.offsets[where] else "start"
    return f"{wanted} is not in the log: moved to its {nearest}"


def _value(target: Target, what: str) -> int:
    if target.value is None:
        raise Unacceptable(f"{what} is missing.")
    return target.value


def _at_least_zero(target: Target, what: str) -> int:
    if (value := _value(target, what)) < 0:
        raise Unacceptable(f"{what} must not be negative.")
    return value


# --- which partitions -------------------------------------------------------------------------------------------------


def _chosen(leaders: Mapping[TopicPartition, int], scopes: Sequence[Scope]) -> list[TopicPartition]:
    chosen: set[TopicPartition] = set()
    for scope in scopes:
        if scope.partitions is not None:
            chosen.update(TopicPartition(scope.topic, number) for number in scope.partitions)
        elif found := [where for where in leaders if where.topic == scope.topic]:
            chosen.update(found)
        else:
            raise NotThere(f"There is no topic {scope.topic}, or you may not see it.")
    return sorted(chosen)


def _check_leaders(leaders: Mapping[TopicPartition, int], partitions: Collection[TopicPartition]) -> None:
    if missing := [str(where) for where in partitions if where not in leaders]:
        raise NotThere(f"There is no partition {some(missing)}, or you may not see it.")
    if without := [str(where) for where in partitions if leaders[where] < 0]:
        raise Conflict(f"No broker leads {some(without)} at the moment: try again later.")


def _leaders(admin: Admin, topics: Collection[str]) -> dict[TopicPartition, int]:
    """The leader of each partition, or -1, of the topics that exist."""
    described = describe_topics_by_metadata(admin, sorted(topics)) if topics else {}
    return {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in described.values()
        if not isinstance(topic, Refused)
        for each in topic.partitions
    }
