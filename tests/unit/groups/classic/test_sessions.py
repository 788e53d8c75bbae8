"""Heartbeats and what happens without them."""

from kaspar.base.errors import ErrorCode
from kaspar.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS
from kaspar.groups.group import GroupTimer
from tests.unit.groups.shell import DELAY_MS, REBALANCE_MS, SESSION_MS, Shell


def test_heartbeats_keep_a_session_alive() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    for _ in range(5):
        shell.advance(SESSION_MS - 1)
        assert shell.heartbeat(member, 1) is ErrorCode.NONE


def test_a_heartbeat_sets_no_timer() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    before = dict(shell.timers)
    shell.advance(100)
    shell.heartbeat(member, 1)
    assert shell.timers == before


def test_a_member_that_is_silent_for_a_session_is_removed() -> None:
    shell = Shell()
    leader, silent = shell.stable(2)
    shell.advance(SESSION_MS - 1)
    shell.heartbeat(leader, 1)
    shell.advance(1)
    assert shell.state == "PreparingRebalance"
    assert shell.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.join(leader).response.generation_id == 2


def test_a_group_of_which_all_are_silent_is_empty_and_the_log_says_so() -> None:
    shell = Shell()
    shell.stable(2)
    shell.advance(SESSION_MS + REBALANCE_MS)
    assert shell.state == "Empty"
    assert shell.records[-1].value == shell.stored
    assert (shell.stored.members, shell.stored.generation) == ((), 2)


def test_a_wall_clock_that_jumps_ends_no_session() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    shell.now = shell.now._replace(wall_ms=shell.now.wall_ms + 10**9)
    shell.advance(SESSION_MS - 1)
    assert shell.heartbeat(member, 1) is ErrorCode.NONE


def test_a_heartbeat_names_the_generation_that_is() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    assert shell.heartbeat(member, 0) is ErrorCode.ILLEGAL_GENERATION
    assert shell.heartbeat(member, 2) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_is_for_members() -> None:
    shell = Shell()
    assert shell.heartbeat("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    shell.stable(1)
    assert shell.heartbeat("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_while_the_leader_assigns_is_an_ordinary_one() -> None:
    shell = Shell()
    member, _ = shell.enter()
    shell.advance(DELAY_MS)
    assert shell.state == "CompletingRebalance"
    assert shell.heartbeat(member, 1) is ErrorCode.NONE


def test_a_member_that_heartbeats_without_rejoining_stays_until_the_rebalance_ends() -> None:
    shell = Shell()
    leader, slow = shell.stable(2)
    joined = shell.join(leader)
    for _ in range(3):
        shell.advance(SESSION_MS - 1)
        assert shell.heartbeat(slow, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert joined.waits
    shell.join(slow)
    assert joined.response.generation_id == 2


def test_a_member_that_waits_for_others_to_join_needs_no_heartbeats() -> None:
    shell = Shell()
    leader, slow = shell.stable(2)
    joined = shell.join(leader)
    for _ in range(4):
        shell.advance(SESSION_MS - 1)
        shell.heartbeat(slow, 1)
    shell.join(slow)
    assert joined.code is ErrorCode.NONE
    shell.advance(SESSION_MS - 1)
    assert shell.heartbeat(leader, 2) is ErrorCode.NONE


def test_the_last_one_waited_for_is_given_up_on_when_its_session_ends() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    joined = shell.join(leader)
    shell.advance(SESSION_MS)
    assert joined.response.generation_id == 2
    assert len(joined.response.members) == 1


def test_a_new_member_may_wait_for_five_minutes() -> None:
    shell = Shell()
    (slow,) = shell.stable(1, rebalance_timeout_ms=10**9)
    given = shell.join().response.member_id
    joined = shell.join(given)
    waited_ms = 0
    while joined.waits:
        shell.advance(SESSION_MS - 1)
        shell.heartbeat(slow, 1)
        waited_ms += SESSION_MS - 1
    assert joined.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert waited_ms - SESSION_MS < NEW_MEMBER_JOIN_TIMEOUT_MS <= waited_ms


def test_a_shorter_session_counts_from_the_next_generation() -> None:
    shell = Shell()
    (member,) = shell.stable(1, session_timeout_ms=30_000)
    joined = {member: shell.join(member, session_timeout_ms=6_000)}
    shell.settle(joined)
    shell.advance(6_000)
    assert shell.heartbeat(member, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_timers_of_groups_and_members_that_are_gone_do_nothing() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    timers = [key for key in shell.timers if isinstance(key, GroupTimer)]
    assert timers
    shell.leave((member, None))
    for key in (*timers, GroupTimer("no such group", "session", member)):
        decision = shell.shard.timer_fired(key, shell.now)
        assert [*decision.records, *decision.replies, *decision.timers, *decision.actions] == []
    assert shell.state == "Empty"
