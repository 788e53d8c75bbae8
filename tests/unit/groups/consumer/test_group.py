"""What a consumer group is asked by offsets and admin tools, and assignments that are computed in a thread."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.groups.consumer.target import INLINE_SIZE, ComputeAssignment
from kaspar.groups.metadata_hash import group_hash, topic_hash
from kaspar.groups.offsets.commits import DecodedCommit
from kaspar.groups.topics import TopicView
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest
from tests.unit.groups.consumer.shell import ConsumerShell, topic_id
from tests.unit.groups.consumer.test_heartbeat import ALL
from tests.unit.groups.shell import GROUP


def refused(ask: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(Refused) as refusal:
        ask()
    return refusal.value.code


def committer(member_id: str, epoch: int, api_version: int) -> DecodedCommit:
    request = OffsetCommitRequest(group_id=GROUP, member_id=member_id, generation_id_or_member_epoch=epoch, topics=())
    return DecodedCommit(request, api_version)


# -- offsets -----------------------------------------------------------------------------------------------------------


def test_a_member_commits_at_its_epoch() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    check = shell.group.check_offset_commit
    assert check(committer("a", 2, 9), transactional=False) is None
    assert refused(lambda: check(committer("a", 3, 9), transactional=False)) is ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: check(committer("b", 2, 9), transactional=False)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: check(committer("", -1, 9), transactional=False)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: check(committer("a", 2, 8), transactional=False)) is ErrorCode.UNSUPPORTED_VERSION
    assert check(committer("a", 2, 3), transactional=True) is None
    assert check(committer("", -1, 3), transactional=True) is None


def test_anybody_commits_while_the_group_is_empty() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().leave()
    assert shell.group.check_offset_commit(committer("", -1, 2), transactional=False) is None


def test_a_commit_that_crossed_a_heartbeat_counts_for_what_the_member_had_before() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second)
    kept, got_later = sorted(first.partitions)[0], "orders-9"
    check = shell.group.check_offset_commit(committer("a", 2, 9), transactional=False)
    assert check is not None
    number = int(kept.rpartition("-")[2])
    check("orders", topic_id("orders"), number)
    check("orders", ZERO_UUID, number)
    lost = int(sorted(second.partitions)[0].rpartition("-")[2])
    assert refused(lambda: check("orders", topic_id("orders"), lost)) is ErrorCode.STALE_MEMBER_EPOCH
    of_second = shell.group.check_offset_commit(committer("b", 2, 9), transactional=False)
    assert of_second is not None
    assert refused(lambda: of_second("orders", topic_id("orders"), lost)) is ErrorCode.STALE_MEMBER_EPOCH
    assert got_later not in first.partitions


def test_a_member_fetches_at_its_epoch_and_admin_tools_at_any_time() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    shell.group.check_offset_fetch(None, -1)
    shell.group.check_offset_fetch("a", 2)
    assert refused(lambda: shell.group.check_offset_fetch("a", 3)) is ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: shell.group.check_offset_fetch("b", 2)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_only_an_empty_group_is_deleted() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a").join()
    assert refused(shell.group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    member.leave()
    shell.group.check_delete()


def test_offsets_of_topics_that_are_read_do_not_expire() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    by_name, by_pattern = shell.consumer("a").join(), shell.consumer("b", pattern="pay.*").join()
    shell.settle(by_name, by_pattern)
    assert shell.group.offsets_expire_from("orders", 5) is None
    assert shell.group.offsets_expire_from("payments", 5) is None
    assert shell.group.offsets_expire_from("refunds", 5) == 5


# -- description -------------------------------------------------------------------------------------------------------


def test_a_description_has_what_members_have_and_are_to_have() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    shell.consumer("b", instance_id="i").join()
    first.heartbeat()
    described = shell.shard.consumer_describe("readers", shell.now)
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Reconciling", 3, 3)
    assert described.assignor_name == "uniform"
    a, b = described.members
    assert (a.member_epoch, b.member_epoch, b.instance_id, a.member_type) == (2, 3, "i", 1)
    assert a.assignment.topic_partitions[0].partitions == (0, 1, 2, 3), "what it has to give up it still has"
    assert a.assignment.topic_partitions[0].topic_name == "orders"
    assert len(a.target_assignment.topic_partitions[0].partitions) == 2
    assert b.assignment.topic_partitions == ()


def test_a_group_that_is_not_there_is_not_described() -> None:
    shell = ConsumerShell()
    assert refused(lambda: shell.shard.consumer_describe("readers", shell.now)) is ErrorCode.GROUP_ID_NOT_FOUND


# -- assignments in a thread -------------------------------------------------------------------------------------------


def test_a_large_assignment_is_computed_elsewhere_while_members_go_on_with_the_last() -> None:
    shell = ConsumerShell(orders=INLINE_SIZE)
    first = shell.consumer("a").join()
    assert (first.epoch, first.partitions, shell.state) == (1, set(), "Assigning")
    (action,) = shell.actions
    assert isinstance(action, ComputeAssignment)
    first.heartbeat()
    assert len(shell.actions) == 1
    shell.work()
    first.heartbeat()
    assert (first.epoch, len(first.partitions)) == (2, INLINE_SIZE)
    second = shell.consumer("b").join()
    assert (second.epoch, shell.state) == (2, "Assigning")
    shell.work()
    assert shell.state == "Reconciling"
    shell.settle(first, second)
    assert len(first.partitions) == len(second.partitions) == INLINE_SIZE // 2


def test_what_was_computed_for_members_that_are_gone_is_passed_over() -> None:
    shell = ConsumerShell(orders=INLINE_SIZE)
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    second.leave()
    shell.work()
    assert set(shell.membership.state.targets) == {"a"}
    assert shell.state == "Assigning"
    shell.settle(first)
    assert len(first.partitions) == INLINE_SIZE


def test_what_was_computed_for_a_static_member_is_its_own_under_another_id() -> None:
    shell = ConsumerShell(orders=INLINE_SIZE)
    static = shell.consumer("a", instance_id="i").join()
    other = shell.consumer("b").join()
    static.leave(-2)
    back = shell.consumer("c", instance_id="i").join()
    shell.work()
    shell.settle(back, other)
    assert len(back.partitions) == len(other.partitions) == INLINE_SIZE // 2


def test_a_refused_decision_leaves_no_assignment_behind_that_is_never_computed() -> None:
    shell = ConsumerShell(orders=INLINE_SIZE)
    shell.consumer("a").join()
    shell.work()
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.consumer("b").join()
    shell.refuses = None
    assert not shell.shard.context.computing
    shell.consumer("b").join()
    assert len(shell.actions) == 1


def test_what_is_computed_for_a_group_that_is_gone_comes_to_nothing() -> None:
    shell = ConsumerShell(orders=INLINE_SIZE)
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    first.leave()
    second.leave()
    shell.submit(lambda shard, ticket, now: shard.delete("readers", now), lambda code: None)  # type: ignore[arg-type, return-value]
    shell.work()
    assert not shell.shard.groups
    assert not shell.shard.context.computing


# -- the hash of topics ------------------------------------------------------------------------------------------------

ID = uuid.UUID("01234567-89ab-cdef-fedc-ba9876543210")


def test_the_hash_of_a_topic_is_kafkas() -> None:
    """The numbers come from Kafka's own hash library."""
    assert topic_hash(TopicView("orders", ID, 2)) == -1858927075428748546
    racks = (frozenset({"r2", "r1"}), frozenset({"r1"}))
    assert topic_hash(TopicView("orders", ID, 2, racks)) == -8218329580243430138
    assert topic_hash(TopicView("påyments\N{GRINNING FACE}", uuid.UUID(int=(1 << 64) | 2), 300)) == 7058959373935179755


def test_the_hash_of_a_group_is_kafkas() -> None:
    one, other = -1858927075428748546, 7058959373935179755
    assert group_hash({}) == 0
    assert group_hash({"orders": one}) == -1199448515594649190
    assert group_hash({"payments": other, "orders": one}) == -6928617431626724990


def test_all_partitions_are_there_once() -> None:
    shell = ConsumerShell()
    consumers = [shell.consumer(name).join() for name in "abcde"]
    shell.settle(*consumers)
    assert sorted(len(each.partitions) for each in consumers) == [0, 1, 1, 1, 1]
    assert set().union(*(each.partitions for each in consumers)) == ALL
