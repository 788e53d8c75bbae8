"""Static members of a consumer group (KIP-345 and KIP-848): an instance id outlives the member ids it is used with."""

from kaspar.base.errors import ErrorCode
from tests.unit.groups.consumer.shell import CONSUMER_SESSION_MS, ConsumerShell
from tests.unit.groups.consumer.test_heartbeat import ALL, code


def test_a_static_member_that_is_away_keeps_its_partitions() -> None:
    shell = ConsumerShell()
    static, other = shell.consumer("a", instance_id="i").join(), shell.consumer("b").join()
    shell.settle(static, other)
    had = static.partitions
    response = static.leave(-2)
    assert (code(response), response.member_epoch) == (ErrorCode.NONE, -2)
    epoch = shell.membership.state.group_epoch
    other.heartbeat()
    assert other.partitions == ALL - had
    back = shell.consumer("a2", instance_id="i").join()
    assert back.partitions == had
    assert shell.membership.state.group_epoch == epoch, "nobody else notices"
    assert "a" not in shell.membership.state.members


def test_a_static_member_that_does_not_come_back_loses_them() -> None:
    shell = ConsumerShell()
    shell.consumer("a", instance_id="i").join().leave(-2)
    shell.advance(CONSUMER_SESSION_MS)
    assert shell.state == "Empty"


def test_an_instance_id_in_use_is_not_given_to_another() -> None:
    shell = ConsumerShell()
    shell.consumer("a", instance_id="i").join()
    assert code(shell.consumer("b", instance_id="i").join().response) is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_member_id_that_was_replaced_is_fenced() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a", instance_id="i").join()
    first.leave(-2)
    shell.consumer("b", instance_id="i").join()
    assert code(shell.beat("a", 1, instance_id="i")) is ErrorCode.FENCED_INSTANCE_ID
    assert code(shell.beat("a", -1, instance_id="i")) is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_that_nobody_has_is_unknown() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    assert code(shell.beat("a", 1, instance_id="i")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(shell.beat("a", -2, instance_id="i")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_may_come_back_under_the_same_member_id() -> None:
    shell = ConsumerShell()
    static = shell.consumer("a", instance_id="i").join()
    static.leave(-2)
    static.join()
    assert static.partitions == ALL
    assert shell.member("a").instance_id == "i"


def test_a_returning_static_member_with_another_subscription_gets_a_new_assignment() -> None:
    shell = ConsumerShell(orders=2, payments=2)
    shell.consumer("a", "orders", instance_id="i").join().leave(-2)
    back = shell.consumer("b", "payments", instance_id="i").join()
    assert back.partitions == {"payments-0", "payments-1"}
    assert shell.membership.state.subscribed_topics() == {"payments"}


def test_a_static_member_that_leaves_for_good_frees_its_partitions() -> None:
    shell = ConsumerShell()
    static, other = shell.consumer("a", instance_id="i").join(), shell.consumer("b").join()
    shell.settle(static, other)
    static.leave(-1)
    other.heartbeat()
    assert other.partitions == ALL
    assert shell.consumer("c", instance_id="i").join().epoch > 0


def test_an_absent_static_member_is_replaced_after_a_restart_too() -> None:
    shell = ConsumerShell()
    shell.consumer("a", instance_id="i").join().leave(-2)
    shell.crash()
    assert shell.consumer("b", instance_id="i").join().partitions == ALL


def test_a_session_of_the_member_that_was_replaced_ends_nothing() -> None:
    shell = ConsumerShell()
    shell.consumer("a", instance_id="i").join().leave(-2)
    shell.advance(CONSUMER_SESSION_MS - 1)
    shell.consumer("b", instance_id="i").join()
    shell.advance(1)
    assert set(shell.membership.state.members) == {"b"}
