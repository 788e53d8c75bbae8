"""What is carried out without a decision, and what is not. That it comes to the same as a decision is what `Shell` and
`ConsumerShell` check with every request of every test of groups.
"""

from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from tests.unit.groups.consumer_shell import ConsumerShell
from tests.unit.groups.shell import Shell


def test_who_joins_again_before_the_last_only_waits() -> None:
    shell = Shell()
    leader, second, third, last = shell.stable(4)
    before = shell.waited_at_once
    joined = [shell.join(member_id) for member_id in (leader, second, third, last)]
    assert shell.waited_at_once - before == 2, "the first begins the rebalance, and the last ends it"
    assert all(each.code is ErrorCode.NONE for each in joined)


def test_other_metadata_for_the_same_protocols_is_no_reason_for_a_decision() -> None:
    shell = Shell()
    leader, second, third = shell.stable(3)
    shell.join(leader)
    before = shell.waited_at_once
    shell.join(second, protocols={"range": b"other", "roundrobin": b""})
    assert shell.waited_at_once - before == 1
    shell.join(third)
    assert [member.protocols["range"] for member in shell.classic().roster] == [b"", b"other", b""]


@pytest.mark.parametrize(
    "how",
    [
        {"session_timeout_ms": 6_000},
        {"rebalance_timeout_ms": 6_000},
        {"protocols": {"range": b""}},
        {"protocol_type": "connect"},
        {"instance_id": "somebody"},
        {"version": 0},
    ],
)
def test_who_joins_in_another_way_needs_a_decision(how: dict[str, Any]) -> None:
    shell = Shell()
    leader, second, *_ = shell.stable(4)
    shell.join(leader)
    before = shell.waited_at_once
    shell.join(second, **how)
    assert shell.waited_at_once == before


def test_in_a_group_that_is_too_large_the_last_to_come_need_a_decision() -> None:
    shell = Shell()
    leader, second, third, _ = shell.stable(4)
    shell.settings = GroupSettings(group_max_size=2)
    shell.crash()
    known = {"range": b""}  # all that the log has of what they can
    shell.join(leader, protocols=known)
    before = shell.waited_at_once
    assert shell.join(second, protocols=known).waits
    assert shell.waited_at_once - before == 1
    assert shell.join(third, protocols=known).code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert shell.waited_at_once - before == 1


def test_who_asks_before_the_leader_has_assigned_only_waits() -> None:
    shell = Shell()
    leader, second, third = shell.stable(3)
    for member_id in (leader, second, third):
        shell.join(member_id)
    before, generation_id = shell.waited_at_once, shell.generation_id
    waiting = shell.sync(second, generation_id)
    assert shell.waited_at_once - before == 1
    shell.sync(second, generation_id)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS, "who asks twice is told so: a decision"
    assert shell.sync(third, generation_id - 1).code is ErrorCode.ILLEGAL_GENERATION
    shell.sync(leader, generation_id, {second: b"yours"})
    assert shell.waited_at_once - before == 1


def test_whoever_has_its_part_of_a_new_target_moves_on_without_a_decision() -> None:
    shell = ConsumerShell(orders=6)
    consumers = [shell.consumer(name).join() for name in ("a", "b", "c")]
    shell.settle(*consumers)
    before = shell.moved_at_once
    shell.consumer("d").join()
    for consumer in consumers:
        consumer.heartbeat()
    assert shell.moved_at_once - before == 2, "one has to give up a partition"


@pytest.mark.parametrize("how", [{"instance_id": "static"}, {"pattern": "orders"}])
def test_static_members_and_those_with_patterns_need_a_decision(how: dict[str, Any]) -> None:
    shell = ConsumerShell(orders=6)
    consumers = [shell.consumer("a", **how).join(), shell.consumer("b").join(), shell.consumer("c").join()]
    shell.work()
    shell.settle(*consumers)
    shell.consumer("d").join()
    before = shell.moved_at_once
    consumers[0].heartbeat()
    assert shell.moved_at_once == before


def test_another_client_under_the_same_id_needs_a_decision() -> None:
    shell = ConsumerShell(orders=6)
    consumers = [shell.consumer(name).join() for name in ("a", "b", "c")]
    shell.settle(*consumers)
    shell.consumer("d").join()
    before = shell.moved_at_once
    for consumer in consumers:
        shell.beat(consumer.member_id, consumer.epoch, client_id="another")
    assert shell.moved_at_once == before


def test_a_log_that_refuses_leaves_a_member_where_it_was() -> None:
    shell = ConsumerShell(orders=6)
    consumers = [shell.consumer(name).join() for name in ("a", "b", "c")]
    shell.settle(*consumers)
    shell.consumer("d").join()
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    epochs = [shell.member(consumer.member_id).member_epoch for consumer in consumers]
    for consumer in consumers:
        consumer.heartbeat()
    assert [shell.member(consumer.member_id).member_epoch for consumer in consumers] == epochs
