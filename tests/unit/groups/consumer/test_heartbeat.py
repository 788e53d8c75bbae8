"""ConsumerGroupHeartbeat: how members come into a consumer group, share its partitions, and leave it."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.consumer.requests import check_request
from kaspar.groups.consumer.states import MemberState
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from tests.unit.groups.consumer.shell import HEARTBEAT_MS, ConsumerShell, topic_id
from tests.unit.groups.shell import GROUP, REBALANCE_MS

ALL = {"orders-0", "orders-1", "orders-2", "orders-3"}


def code(response: object) -> ErrorCode:
    return ErrorCode(response.error_code)  # type: ignore[attr-defined]


# -- joining -----------------------------------------------------------------------------------------------------------


def test_the_first_member_has_everything_at_once() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    assert first.epoch == 2
    assert first.partitions == ALL
    assert first.response is not None
    assert first.response.heartbeat_interval_ms == HEARTBEAT_MS
    assert shell.state == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up_its_half() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    second = shell.consumer("b").join()
    assert second.epoch == 3
    assert second.partitions == set()
    assert shell.member("b").state is MemberState.UNRELEASED_PARTITIONS
    first.heartbeat()
    assert first.epoch == 2, "it stays at its epoch as long as it has to give up partitions"
    assert len(first.partitions) == 2
    second.heartbeat()
    assert second.partitions == set(), "the first has not said yet that it gave them up"
    first.heartbeat()
    assert first.epoch == 3
    second.heartbeat()
    assert second.partitions == ALL - first.partitions
    assert shell.state == "Stable"


def test_a_member_that_joins_again_is_the_same_member() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    again = shell.consumer("a").join()
    assert again.epoch == first.epoch
    assert again.partitions == ALL
    assert len(shell.membership.state.members) == 1


def test_a_client_of_version_0_gets_its_id_from_the_broker() -> None:
    shell = ConsumerShell()
    response = shell.beat(
        "", 0, version=0, rebalance_timeout_ms=1, subscribed_topic_names=("orders",), topic_partitions=()
    )
    assert code(response) is ErrorCode.NONE
    assert response.member_id in shell.membership.state.members


def test_a_heartbeat_that_does_not_join_needs_a_member() -> None:
    shell = ConsumerShell()
    assert code(shell.beat("a", 2)) is ErrorCode.GROUP_ID_NOT_FOUND
    shell.consumer("a").join()
    assert code(shell.beat("b", 2)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_no_more() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_max_size=1))
    shell.consumer("a").join()
    other = shell.consumer("b").join()
    assert code(other.response) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(shell.consumer("a").join().response) is ErrorCode.NONE


def test_a_group_of_nothing_is_at_its_first_epoch_nevertheless() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", "no-such-topic").join()
    assert member.epoch == 2
    assert member.partitions == set()
    assert shell.state == "Stable"


# -- what a request may not say ----------------------------------------------------------------------------------------


def valid(**changed: object) -> ConsumerGroupHeartbeatRequest:
    said: dict[str, object] = {
        "group_id": GROUP,
        "member_id": "a",
        "member_epoch": 0,
        "rebalance_timeout_ms": REBALANCE_MS,
        "subscribed_topic_names": ("orders",),
        "topic_partitions": (),
    }
    return ConsumerGroupHeartbeatRequest(**{**said, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {"member_id": " "},
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": (RequestTopicPartitions(topic_id=topic_id("orders"), partitions=(1,)),)},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
    ],
)
def test_an_invalid_request_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        check_request(valid(**changed), 1, ("uniform", "range"))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_a_request_that_is_valid_is_not_refused() -> None:
    check_request(valid(), 1, ("uniform",))
    check_request(valid(member_id=""), 0, ("uniform",))
    check_request(valid(member_epoch=-1), 1, ("uniform",))
    check_request(valid(member_epoch=-2, instance_id="i"), 1, ("uniform",))


def test_an_assignor_that_is_not_served_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        check_request(valid(server_assignor="mine"), 1, ("uniform", "range"))
    assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_an_epoch_ahead_of_the_members_is_fenced() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    assert code(shell.beat("a", 3)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_missed_the_response_gets_its_assignment_again() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    shell.consumer("b").join()
    first.heartbeat()
    shell.beat("a", 2, topic_partitions=first.reported)
    assert shell.member("a").member_epoch == 3
    again = shell.beat("a", 2, topic_partitions=first.reported)
    assert code(again) is ErrorCode.NONE
    assert again.member_epoch == 3


def test_a_member_one_epoch_behind_that_owns_more_than_assigned_is_fenced() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    everything = first.reported
    shell.consumer("b").join()
    first.heartbeat()
    first.heartbeat()
    assert first.epoch == 3
    assert code(shell.beat("a", 2, topic_partitions=everything)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(shell.beat("a", 2)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_two_epochs_behind_is_fenced() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second)
    third = shell.consumer("c").join()
    shell.settle(first, second, third)
    assert first.epoch == 4
    assert code(shell.beat("a", 2, topic_partitions=())) is ErrorCode.FENCED_MEMBER_EPOCH


# -- what a response reports -------------------------------------------------------------------------------------------


def test_the_assignment_is_sent_once() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    assert shell.beat("a", 2).assignment is None


def test_a_full_heartbeat_gets_a_full_response() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    response = shell.beat(
        "a",
        2,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=("orders",),
        topic_partitions=first.reported,
    )
    assert response.assignment is not None
    assert response.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)


# -- subscriptions -----------------------------------------------------------------------------------------------------


def test_a_member_gives_up_at_once_what_it_no_longer_reads() -> None:
    shell = ConsumerShell(orders=2, payments=2)
    only = shell.consumer("a", "orders", "payments").join()
    only.subscribe("payments")
    assert only.partitions == {"payments-0", "payments-1"}
    assert shell.member("a").state is MemberState.UNREVOKED_PARTITIONS
    only.heartbeat()
    assert shell.member("a").state is MemberState.STABLE


def test_without_a_new_assignment_the_subscription_counts_all_the_same() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_assignment_interval_ms=15_000), orders=2, payments=2)
    only = shell.consumer("a", "orders", "payments").join()
    only.subscribe("payments")
    assert shell.membership.state.assignment_epoch == 2
    assert only.epoch == 2
    assert only.partitions == {"payments-0", "payments-1"}


def test_members_that_read_different_topics_get_only_those() -> None:
    shell = ConsumerShell(orders=4, payments=2)
    first, second = shell.consumer("a", "orders").join(), shell.consumer("b", "orders", "payments").join()
    shell.settle(first, second)
    assert {"payments-0", "payments-1"} <= second.partitions
    assert len(first.partitions) == len(second.partitions) == 3


def test_what_most_members_ask_for_is_the_assignor() -> None:
    shell = ConsumerShell(orders=3, payments=3)
    a, b = (shell.consumer(name, "orders", "payments", assignor="range").join() for name in ("a", "b"))
    shell.settle(a, b)
    assert a.partitions == {"orders-0", "orders-1", "payments-0", "payments-1"}
    assert shell.group.consumer_describe().assignor_name == "range"


# -- the interval between two assignments ------------------------------------------------------------------------------


def test_a_second_assignment_waits_for_the_interval() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    first = shell.consumer("a").join()
    second = shell.consumer("b").join()
    assert second.epoch == 2, "it joins at the epoch of the last assignment"
    assert shell.state == "Assigning"
    shell.advance(999)
    first.heartbeat()
    assert shell.state == "Assigning"
    shell.advance(1)
    first.heartbeat()
    assert shell.membership.state.assignment_epoch == 3


def test_a_wall_clock_that_went_back_holds_up_no_assignment() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    shell.consumer("a").join()
    shell.now = shell.now._replace(wall_ms=shell.now.wall_ms - 3_600_000)
    assert shell.consumer("b").join().epoch == 3


def test_a_group_may_have_an_interval_of_its_own() -> None:
    shell = ConsumerShell(GroupSettings(group_consumer_assignment_interval_ms=15_000))
    shell.shard.context.group_configs = {GROUP: {"consumer.assignment.interval.ms": "0"}}
    shell.consumer("a").join()
    assert shell.consumer("b").join().epoch == 3


# -- leaving -----------------------------------------------------------------------------------------------------------


def test_what_a_member_had_is_free_when_it_leaves() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second)
    response = second.leave()
    assert (code(response), response.member_epoch) == (ErrorCode.NONE, -1)
    first.heartbeat()
    assert first.partitions == ALL


def test_a_group_without_members_is_empty_and_can_be_joined_again() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().leave()
    assert shell.state == "Empty"
    again = shell.consumer("b").join()
    assert again.epoch == 4
    assert again.partitions == ALL


def test_an_unknown_member_cannot_leave() -> None:
    shell = ConsumerShell()
    assert code(shell.beat("a", -1)) is ErrorCode.GROUP_ID_NOT_FOUND
    shell.consumer("a").join()
    assert code(shell.beat("b", -1)) is ErrorCode.UNKNOWN_MEMBER_ID


# -- the short way -----------------------------------------------------------------------------------------------------


def test_a_heartbeat_without_changes_takes_the_fast_path() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().heartbeat()
    at_once = shell.unchanged("a", 2)
    assert at_once == shell.beat("a", 2)
    assert not shell.since(len(shell.log))


@pytest.mark.parametrize(
    "said",
    [
        {"subscribed_topic_names": ("orders",)},
        {"topic_partitions": ()},
        {"rebalance_timeout_ms": 1},
        {"server_assignor": "range"},
        {"rack_id": "r"},
        {"instance_id": "i"},
        {"subscribed_topic_regex": "o.*"},
    ],
)
def test_a_heartbeat_with_changes_takes_the_normal_path(said: dict[str, object]) -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().heartbeat()
    assert shell.unchanged("a", 2, **said) is None


def test_a_member_with_pending_changes_takes_the_normal_path() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().heartbeat()
    assert shell.unchanged("a", 0) is None
    assert shell.unchanged("a", 3) is None
    assert shell.unchanged("b", 2) is None
    shell.consumer("b").join()
    assert shell.unchanged("a", 2) is None


def test_a_heartbeat_at_once_keeps_the_session() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join().heartbeat()
    for _ in range(20):
        shell.advance(HEARTBEAT_MS)
        assert shell.unchanged("a", 2) is not None
    assert "a" in shell.membership.state.members
