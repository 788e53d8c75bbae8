"""Subscriptions by pattern: resolved in a thread, refreshed when there are new topics, and checked by RE2."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.groups.consumer.pattern_resolution import LEAST_INTERVAL_MS, REFRESH_INTERVAL_MS
from kaspar.groups.consumer.patterns import problem_with, resolve
from tests.unit.groups.consumer.shell import ConsumerShell
from tests.unit.groups.consumer.test_heartbeat import code


def test_a_pattern_matches_whole_names() -> None:
    names = ("orders", "orders-eu", "my-orders", "payments")
    assert resolve(["orders", "orders.*", "(?i)PAY.*"], names) == {
        "orders": {"orders"},
        "orders.*": {"orders", "orders-eu"},
        "(?i)PAY.*": {"payments"},
    }


@pytest.mark.parametrize("pattern", ["*", "(", "[a", "a{2,1}", r"\8", "(?=a)b"])
def test_a_bad_pattern_is_refused_with_the_sentence_of_re2(pattern: str) -> None:
    shell = ConsumerShell()
    response = shell.consumer("a", pattern=pattern).join().response
    assert response is not None
    assert code(response) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert response.error_message is not None
    assert str(problem_with(pattern)) in response.error_message
    assert not shell.shard.groups


def test_a_pattern_that_another_broker_let_in_stands_for_nothing() -> None:
    assert resolve(["("], ("orders",)) == {"(": frozenset()}


def test_a_member_with_a_pattern_joins_at_once_and_gets_its_topics_when_they_are_found() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    member = shell.consumer("a", pattern="ord.*").join()
    assert member.epoch == 1
    assert member.partitions == set()
    shell.work()
    assert shell.state == "Assigning"
    member.heartbeat()
    assert member.epoch == 2
    assert member.partitions == {"orders-0"}


def test_a_pattern_that_is_known_already_needs_no_second_look() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a", pattern="ord.*").join()
    shell.work()
    first.heartbeat()
    second = shell.consumer("b", pattern="ord.*").join()
    assert not shell.actions
    shell.settle(first, second)
    assert len(first.partitions) == len(second.partitions) == 2


def test_new_topics_are_found_but_not_more_often_than_every_ten_seconds() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*").join()
    shell.work()
    member.heartbeat()
    shell.change_topics(payments=1)
    shell.advance(LEAST_INTERVAL_MS)
    member.heartbeat()
    assert not shell.actions
    shell.advance(1)
    assert shell.unchanged("a", member.epoch) is None
    member.heartbeat()
    shell.work()
    member.heartbeat()
    assert "payments-0" in member.partitions


def test_patterns_are_refreshed_every_ten_minutes() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*").join()
    shell.work()
    member.heartbeat()
    shell.now = shell.now._replace(wall_ms=shell.now.wall_ms + REFRESH_INTERVAL_MS)
    member.heartbeat()
    assert not shell.actions
    shell.now = shell.now._replace(wall_ms=shell.now.wall_ms + 1)
    member.heartbeat()
    assert len(shell.actions) == 1


def test_patterns_are_resolved_once_at_a_time() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*").join()
    member.heartbeat()
    shell.consumer("b", pattern="o.*").join()
    assert len(shell.actions) == 1


def test_a_pattern_that_came_while_others_were_resolved_is_resolved_next() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    a = shell.consumer("a", pattern="ord.*").join()
    b = shell.consumer("b", pattern="pay.*").join()
    shell.settle(a, b)
    assert (a.partitions, b.partitions) == ({"orders-0"}, {"payments-0"})


def test_a_member_may_go_from_a_pattern_to_names() -> None:
    shell = ConsumerShell(orders=1, payments=1)
    member = shell.consumer("a", pattern=".*").join()
    shell.settle(member)
    member._take(shell.beat("a", member.epoch, subscribed_topic_names=("payments",), subscribed_topic_regex=""))
    shell.settle(member)
    assert member.partitions == {"payments-0"}
    assert not shell.membership.state.resolved


def test_the_last_member_takes_its_pattern_along() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*").join()
    shell.work()
    assert shell.membership.state.resolved
    member.leave()
    assert not shell.membership.state.resolved
    assert shell.membership.state.metadata_hash == 0


def test_what_was_found_for_nobody_is_dropped() -> None:
    shell = ConsumerShell()
    shell.consumer("a", pattern=".*").join().leave()
    shell.work()
    assert not shell.membership.state.resolved


def test_patterns_are_looked_at_again_after_a_restart() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*").join()
    shell.settle(member)
    shell.counts["payments"] = 1
    shell.crash()
    shell.settle(member)
    assert "payments-0" in member.partitions


def test_new_topics_that_the_log_refused_to_take_note_of_are_found_again() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a", pattern=".*").join()
    shell.settle(member)
    shell.change_topics(payments=1)
    shell.advance(LEAST_INTERVAL_MS + 1)
    member.heartbeat()
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.work()
    shell.refuses = None
    shell.settle(member)
    assert "payments-0" in member.partitions


def test_a_refused_decision_leaves_no_pattern_behind_that_is_never_resolved() -> None:
    shell = ConsumerShell()
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.consumer("a", pattern=".*").join()
    shell.refuses = None
    assert not shell.actions
    member = shell.consumer("a", pattern=".*").join()
    shell.settle(member)
    assert len(member.partitions) == 4


def test_problem_is_a_sentence_of_re2() -> None:
    assert problem_with("[") == "missing ]: ["
    assert problem_with("orders-.*") is None
