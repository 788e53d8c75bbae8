"""The decisions of kafka-consumer-groups: plans, scopes, targets of a reset, and the rows of a description."""

from collections.abc import Collection, Mapping

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.coordinators import CoordinatorNode
from kaspar.client.admin.group_offsets import GroupOffset
from kaspar.client.admin.groups import GroupDescription, GroupMember, GroupType
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.consumer_groups.describing import offset_rows
from kaspar.tools.consumer_groups.listing import parse_states, parse_types
from kaspar.tools.consumer_groups.options import WrongOption
from kaspar.tools.consumer_groups.plan import format_plan, parse_plan
from kaspar.tools.consumer_groups.resetting import reported
from kaspar.tools.consumer_groups.scope import parse_partitions
from kaspar.tools.consumer_groups.tables import member_table
from kaspar.tools.consumer_groups.targets import Targets, at_time, current, shifted, within_log

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Lookup:
    """Two partitions with the offsets 10 to 20, of which the first has a committed one."""

    def earliest(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, 10)

    def latest(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, 20)

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Mapping[TopicPartition, int]:
        return {where: 15 if where == A else -1 for where in partitions}

    def committed(self) -> Mapping[TopicPartition, int]:
        return {A: 12}


@pytest.mark.parametrize(("wanted", "found"), [(9, 10), (10, 10), (15, 15), (20, 20), (21, 20)])
def test_offset_outside_of_the_log_becomes_its_nearest_end(wanted: int, found: int) -> None:
    targets = within_log(Lookup(), {A: wanted})
    assert targets.offsets == {A: found}
    assert targets.outside == ({} if wanted == found else {A: wanted})


def test_offsets_are_shifted_from_what_is_committed() -> None:
    assert shifted(Lookup(), [A], 3).offsets == {A: 15}
    with pytest.raises(WrongOption, match="orders-1 since there is no current committed offset"):
        shifted(Lookup(), [A, B], 3)


def test_partition_without_a_record_since_then_is_reset_to_its_end() -> None:
    targets = at_time(Lookup(), [A, B], 1)
    assert (targets.offsets, targets.ended) == ({A: 15, B: 20}, (B,))


def test_current_offsets_are_the_committed_ones_or_the_ends() -> None:
    assert current(Lookup(), [A, B]).offsets == {A: 12, B: 20}


def test_offsets_other_than_those_asked_for_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(Targets({A: 20, B: 20}, outside={A: 21}, ended=(B,))) == {A: 20, B: 20}
    shown = capsys.readouterr()
    assert "(21) is higher than latest offset for topic partition orders-0. Value will be set to 20" in shown.err
    assert "Partition 1 from topic orders is empty" in shown.out


def test_plan_of_one_group_does_without_its_name() -> None:
    assert parse_plan('orders,0,3\n"orders",1,4\n', ["g"]) == {"g": {A: 3, B: 4}}
    assert parse_plan("g,orders,0,3\nh,orders,1,4\n", ["g"]) == {"g": {A: 3}, "h": {B: 4}}
    assert parse_plan("g,orders,0,3\nodd\nh,orders,x,4\n", ["g", "h"]) == {"g": {A: 3}}
    with pytest.raises(CommandFailed):
        parse_plan("\n", ["g"])


def test_exported_plan_can_be_read_again() -> None:
    offsets = {"with,comma": {A: 3, B: 4}}
    assert parse_plan(format_plan(offsets, with_group=True), []) == offsets
    assert parse_plan(format_plan(offsets, with_group=False), ["with,comma"]) == offsets


def test_scope_names_partitions_or_topics() -> None:
    assert parse_partitions(["orders:0,1", "other", "orders:1"]) == ([A, B], ["other"])
    for wrong in ("orders:", "orders:0:1", "orders:x"):
        with pytest.raises(WrongOption):
            parse_partitions([wrong])


def test_states_and_types_are_read_in_any_case() -> None:
    assert parse_states("stable, EMPTY") == ["Stable", "Empty"]
    assert parse_types("consumer,Classic") == [GroupType.CONSUMER, GroupType.CLASSIC]
    for parse in (parse_states, parse_types):
        with pytest.raises(WrongOption, match="Valid"):
            parse("odd")


def _group(*members: GroupMember) -> GroupDescription:
    return GroupDescription("g", GroupType.CONSUMER, "Stable", "range", CoordinatorNode(1, "h", 1), members, 3, 4)


def test_partitions_of_members_come_first() -> None:
    group = _group(GroupMember("one", None, "c", "/h", (B,)), GroupMember("two", None, "c", "/h"))
    rows = offset_rows(group, {A: GroupOffset(5, 2, "")}, {A: 7, B: 9})
    assert [(row.partition, row.member_id, row.offset, row.lag, row.leader_epoch) for row in rows] == [
        (B, "one", None, None, None),
        (A, "-", 5, 2, 2),
    ]


def test_members_on_both_protocols_are_marked_while_a_group_migrates() -> None:
    old = GroupMember("old", None, "c", "/h", (A,), (A,), 3, is_upgraded=False)
    new = GroupMember("new", "i", "c", "/h", (B,), (B, A), 3, is_upgraded=True)
    _, header, first, second = member_table(_group(old, new), verbose=True)
    assert header.split()[2:6] == ["GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert header.split()[-2:] == ["TARGET-ASSIGNMENT", "UPGRADED"]
    assert first.split()[-1] == "false"
    assert second.split() == ["g", "new", "i", "/h", "c", "1", "3", "orders:1", "4", "orders:0,1", "true"]
    assert "UPGRADED" not in list(member_table(_group(new), verbose=True))[1]
