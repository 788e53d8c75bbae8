"""Which offsets a group gets, what that means for its readers, and when a preview no longer holds."""

from collections.abc import Collection, Mapping

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.coordinators import CoordinatorNode
from kaspar.client.admin.groups import GroupDescription, GroupListing, GroupMember, GroupType
from kaspar.console.groups.resetting import Move, Target, TargetKind, check_moves, planned, targets_of, why_not
from kaspar.console.problems import Conflict, Unacceptable

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW_MS = 100_000


class Lookup:
    """Two partitions with the offsets 10 to 20: 12 is committed of the first, nothing of the second. The record with
    the offset 15 of the first is from the time 50,000; the second has had none since."""

    def __init__(self, committed: Mapping[TopicPartition, int] | None = None) -> None:
        self._committed = {A: 12} if committed is None else committed

    def earliest(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, 10)

    def latest(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, 20)

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Mapping[TopicPartition, int]:
        return {where: 15 if where == A and timestamp_ms <= 50_000 else -1 for where in partitions}

    def committed(self) -> Mapping[TopicPartition, int]:
        return self._committed


def new_offsets(target: Target, *partitions: TopicPartition) -> Mapping[TopicPartition, int]:
    return targets_of(Lookup(), partitions, target, NOW_MS).offsets


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (Target(TargetKind.EARLIEST), 10),
        (Target(TargetKind.LATEST), 20),
        (Target(TargetKind.TIME, 50_000), 15),
        (Target(TargetKind.TIME, 50_001), 20),
        (Target(TargetKind.DURATION, 50_000), 15),
        (Target(TargetKind.DURATION, 49_999), 20),
        (Target(TargetKind.SHIFT, 3), 15),
        (Target(TargetKind.SHIFT, -100), 10),
        (Target(TargetKind.OFFSET, 17), 17),
        (Target(TargetKind.OFFSET, 999), 20),
    ],
)
def test_where_a_partition_goes(target: Target, offset: int) -> None:
    assert new_offsets(target, A) == {A: offset}


@pytest.mark.parametrize("kind", [TargetKind.TIME, TargetKind.DURATION, TargetKind.OFFSET])
def test_a_target_needs_a_number_that_is_not_negative(kind: TargetKind) -> None:
    with pytest.raises(Unacceptable, match="is missing"):
        new_offsets(Target(kind), A)
    with pytest.raises(Unacceptable, match="must not be negative"):
        new_offsets(Target(kind, -1), A)


def test_what_was_never_committed_cannot_be_shifted() -> None:
    with pytest.raises(Unacceptable, match="No offsets are committed for orders-1"):
        new_offsets(Target(TargetKind.SHIFT, 1), A, B)


@pytest.mark.parametrize(
    ("committed", "new", "skipped", "read_again"),
    [
        (12, 15, 3, 0),
        (12, 10, 0, 2),
        (12, 12, 0, 0),
        (4, 15, 5, 0),  # the records before 10 are gone
        (25, 15, 0, 5),  # the log was truncated: there is nothing beyond 20
        (None, 15, 0, 0),
    ],
)
def test_how_many_records_are_skipped_or_read_again(
    committed: int | None, new: int, skipped: int, read_again: int
) -> None:
    lookup = Lookup({} if committed is None else {A: committed})
    (each,) = planned(lookup, [A], targets_of(lookup, [A], Target(TargetKind.OFFSET, new), NOW_MS))
    assert each.move == Move("orders", 0, committed, new)
    assert (each.skipped, each.read_again) == (skipped, read_again)


def test_an_offset_other_than_asked_for_is_remarked() -> None:
    lookup = Lookup()
    (beyond,) = planned(lookup, [A], targets_of(lookup, [A], Target(TargetKind.OFFSET, 999), NOW_MS))
    (before,) = planned(lookup, [A], targets_of(lookup, [A], Target(TargetKind.OFFSET, 1), NOW_MS))
    (_, ended) = planned(lookup, [A, B], targets_of(lookup, [A, B], Target(TargetKind.TIME, 50_000), NOW_MS))
    assert beyond.remark == "999 is not in the log: moved to its end"
    assert before.remark == "1 is not in the log: moved to its start"
    assert ended.remark == "no record since then: moved to the end"


def test_moves_that_fit_are_accepted() -> None:
    check_moves(Lookup(), [Move("orders", 0, 12, 20), Move("orders", 1, None, 10)])


@pytest.mark.parametrize("old", [11, None])
def test_moves_are_refused_when_something_else_was_committed(old: int | None) -> None:
    with pytest.raises(Conflict, match="orders-0 have changed since the preview"):
        check_moves(Lookup(), [Move("orders", 0, old, 20)])


@pytest.mark.parametrize("new", [9, 21])
def test_moves_are_refused_when_their_offsets_have_left_the_log(new: int) -> None:
    with pytest.raises(Conflict, match="no longer in the log"):
        check_moves(Lookup(), [Move("orders", 0, 12, new)])


def group(state: str, *clients: str) -> GroupDescription:
    members = tuple(GroupMember(f"{each}-1", None, each, "/127.0.0.1") for each in clients)
    return GroupDescription("g", GroupType.CLASSIC, state, "range", CoordinatorNode(1, "h", 1), members)


def test_an_active_group_is_refused_with_its_members() -> None:
    assert why_not(group("Empty")) is None
    assert why_not(group("Dead")) is None
    refusal = why_not(group("Stable", "b", "a"))
    assert refusal is not None
    assert "its state is Stable, with the members a, b" in refusal
    many = why_not(group("Stable", *"abcdefg"))
    assert many is not None
    assert "a, b, c, d, e and 2 more" in many


def test_share_and_streams_groups_are_not_reset_in_this_way() -> None:
    for kind in (GroupType.SHARE, GroupType.STREAMS):
        refusal = why_not(GroupListing("g", kind.lower(), "Empty", kind))
        assert refusal is not None
        assert f"is a {kind.lower()} group" in refusal
