"""SyncGroup: the leader's assignment goes into the log, and from there to the members."""

from typing import Any

from kaspar.base.errors import ErrorCode
from kaspar.groups.group import GroupTimer
from tests.unit.groups.shell import DELAY_MS, GROUP, REBALANCE_MS, SESSION_MS, Shell


def completing(shell: Shell, count: int = 2, **how: Any) -> list[str]:
    """Members of a group that waits for its leader's assignment, the leader first."""
    joined = dict(shell.enter(**how) for _ in range(count))
    shell.advance(2 * DELAY_MS)
    assert shell.state == "CompletingRebalance"
    return list(joined)


def test_followers_wait_until_the_leader_has_assigned() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    waiting = shell.sync(follower, 1)
    assert waiting.waits
    led = shell.sync(leader, 1, {leader: b"mine", follower: b"yours"})
    assert (led.response.assignment, waiting.response.assignment) == (b"mine", b"yours")
    assert led.response.protocol_type == "consumer"
    assert led.response.protocol_name == "range"
    assert shell.state == "Stable"


def test_a_sync_after_the_leaders_gets_its_response_at_once() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    shell.sync(leader, 1, {follower: b"yours"})
    assert shell.sync(follower, 1).response.assignment == b"yours"


def test_syncs_after_the_leaders_change_nothing_and_the_last_stops_the_timer() -> None:
    shell = Shell()
    leader, second, third = completing(shell, 3)
    shell.sync(leader, 1, {second: b"yours", third: b"theirs"})
    records, timer = len(shell.log), GroupTimer(GROUP, "sync")
    assert shell.sync(second, 2).code is ErrorCode.ILLEGAL_GENERATION
    assert shell.sync("stranger", 1).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.sync(second, 1).response.assignment == b"yours"
    assert timer in shell.timers
    for _ in range(2):
        assert shell.sync(third, 1).response.assignment == b"theirs"
        assert timer not in shell.timers, "no member is waited for"
    assert len(shell.log) == records


def test_a_member_that_the_leader_left_out_gets_an_empty_assignment() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    shell.sync(leader, 1, {leader: b"mine", "a stranger": b"all"})
    assert shell.sync(follower, 1).response.assignment == b""


def test_the_assignment_of_a_follower_is_not_looked_at() -> None:
    shell = Shell()
    _, follower = completing(shell)
    assert shell.sync(follower, 1, {follower: b"all"}).response is None


def test_sync_names_the_generation_that_is() -> None:
    shell = Shell()
    leader, _ = completing(shell)
    assert shell.sync(leader, 0).code is ErrorCode.ILLEGAL_GENERATION
    assert shell.sync(leader, 2).code is ErrorCode.ILLEGAL_GENERATION


def test_sync_is_for_members() -> None:
    shell = Shell()
    assert shell.sync("stranger", 1).code is ErrorCode.UNKNOWN_MEMBER_ID
    completing(shell)
    assert shell.sync("stranger", 1).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_names_the_protocol_that_was_chosen_if_it_names_one() -> None:
    shell = Shell()
    leader, _ = completing(shell)
    assert shell.sync(leader, 1, protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert shell.sync(leader, 1, protocol_name="roundrobin").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert shell.sync(leader, 1, protocol_type="consumer", protocol_name="range").code is ErrorCode.NONE


def test_a_sync_during_a_rebalance_is_refused() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    shell.enter()
    assert shell.sync(leader, 1).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_new_member_makes_members_that_wait_for_an_assignment_rejoin() -> None:
    shell = Shell()
    _, follower = completing(shell)
    waiting = shell.sync(follower, 1)
    shell.enter()
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_of_two_syncs_of_one_member_the_older_has_to_rejoin() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    lost = shell.sync(follower, 1)
    kept = shell.sync(follower, 1)
    assert lost.code is ErrorCode.REBALANCE_IN_PROGRESS
    shell.sync(leader, 1, {follower: b"yours"})
    assert kept.response.assignment == b"yours"


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout() -> None:
    shell = Shell()
    leader, silent = completing(shell, session_timeout_ms=10 * REBALANCE_MS)
    shell.sync(leader, 1, {})
    assert shell.state == "Stable"
    shell.advance(REBALANCE_MS)
    assert shell.state == "PreparingRebalance"
    assert shell.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.join(leader).response.generation_id == 2


def test_a_leader_that_never_syncs_is_removed_and_its_followers_rejoin() -> None:
    shell = Shell()
    silent, follower = completing(shell, session_timeout_ms=10 * REBALANCE_MS)
    waiting = shell.sync(follower, 1)
    shell.advance(REBALANCE_MS)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    again = shell.join(follower)
    assert again.response.leader == follower
    assert shell.join(silent).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_is_removed_when_all_have_synced() -> None:
    shell = Shell()
    members = shell.stable(2, session_timeout_ms=10 * REBALANCE_MS)
    shell.advance(2 * REBALANCE_MS)
    assert shell.state == "Stable"
    assert [shell.heartbeat(each, 1) for each in members] == [ErrorCode.NONE] * 2


def test_a_member_that_waits_for_the_leader_needs_no_heartbeats() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    waiting = shell.sync(follower, 1)
    for _ in range(3):
        shell.advance(SESSION_MS - 1)
        shell.heartbeat(leader, 1)
    shell.sync(leader, 1, {follower: b"yours"})
    assert waiting.response.assignment == b"yours"
    shell.advance(SESSION_MS - 1)
    assert shell.heartbeat(follower, 1) is ErrorCode.NONE


# -- the log refuses ---------------------------------------------------------------------------------------------------


def test_an_assignment_that_the_log_refuses_is_given_to_nobody() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    waiting = shell.sync(follower, 1)
    before = list(shell.log)
    shell.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    led = shell.sync(leader, 1, {leader: b"mine", follower: b"yours"})
    assert (led.code, waiting.code) == (ErrorCode.COORDINATOR_NOT_AVAILABLE,) * 2
    assert (led.response.assignment, waiting.response.assignment) == (b"", b"")
    assert shell.log == before
    assert shell.state == "PreparingRebalance"


def test_after_a_refusal_the_members_join_again_and_get_their_assignment() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    shell.refuses = ErrorCode.NOT_COORDINATOR
    shell.sync(leader, 1, {})
    shell.refuses = None
    joined = {leader: shell.join(leader), follower: shell.join(follower)}
    assert {each.response.generation_id for each in joined.values()} == {2}
    shell.settle(joined)
    assert shell.state == "Stable"
