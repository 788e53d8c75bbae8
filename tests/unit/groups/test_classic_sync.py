"""SyncGroup: the leader's assignment goes into the log, and from there to the members."""

from typing import Any

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.sync_group import SyncGroupRequest
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
    assert (led.answer.assignment, waiting.answer.assignment) == (b"mine", b"yours")
    assert led.answer.protocol_type == "consumer"
    assert led.answer.protocol_name == "range"
    assert shell.state == "Stable"


def test_who_comes_after_the_leader_is_answered_at_once() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    shell.sync(leader, 1, {follower: b"yours"})
    assert shell.sync(follower, 1).answer.assignment == b"yours"


def test_who_needs_no_decision_is_answered_without_one() -> None:
    """All who come after the leader but the last of them, with whom the group no longer waits for anybody."""
    shell = Shell()
    leader, second, third = completing(shell, 3)

    def at_once(member_id: str, generation_id: int = 1) -> bytes | None:
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=generation_id, member_id=member_id, group_instance_id=None, assignments=()
        )
        answer = shell.shard.sync_at_once(request)
        return None if answer is None else answer.assignment

    assert at_once(second) is None
    shell.sync(leader, 1, {second: b"yours", third: b"theirs"})
    assert at_once(second, 2) is None
    assert at_once("stranger") is None
    assert at_once(second) == b"yours"
    assert at_once(third) is None
    assert shell.sync(third, 1).answer.assignment == b"theirs"
    assert at_once(third) == b"theirs", "nobody is waited for"


def test_whom_the_leader_forgot_gets_nothing() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    shell.sync(leader, 1, {leader: b"mine", "a stranger": b"all"})
    assert shell.sync(follower, 1).answer.assignment == b""


def test_the_assignment_of_a_follower_is_not_looked_at() -> None:
    shell = Shell()
    _, follower = completing(shell)
    assert shell.sync(follower, 1, {follower: b"all"}).answer is None


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


def test_who_syncs_while_all_are_to_join_again_is_told_so() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    shell.enter()
    assert shell.sync(leader, 1).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_newcomer_sends_those_who_wait_for_an_assignment_back_to_join() -> None:
    shell = Shell()
    _, follower = completing(shell)
    waiting = shell.sync(follower, 1)
    shell.enter()
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_of_two_syncs_of_one_member_the_older_is_told_to_join_again() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    lost = shell.sync(follower, 1)
    kept = shell.sync(follower, 1)
    assert lost.code is ErrorCode.REBALANCE_IN_PROGRESS
    shell.sync(leader, 1, {follower: b"yours"})
    assert kept.answer.assignment == b"yours"


def test_members_who_never_sync_are_removed_when_the_rebalance_timeout_is_up() -> None:
    shell = Shell()
    leader, silent = completing(shell, session_timeout_ms=10 * REBALANCE_MS)
    shell.sync(leader, 1, {})
    assert shell.state == "Stable"
    shell.advance(REBALANCE_MS)
    assert shell.state == "PreparingRebalance"
    assert shell.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.join(leader).answer.generation_id == 2


def test_a_leader_who_never_syncs_is_removed_and_its_followers_join_again() -> None:
    shell = Shell()
    silent, follower = completing(shell, session_timeout_ms=10 * REBALANCE_MS)
    waiting = shell.sync(follower, 1)
    shell.advance(REBALANCE_MS)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    again = shell.join(follower)
    assert again.answer.leader == follower
    assert shell.join(silent).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_is_removed_when_all_have_synced() -> None:
    shell = Shell()
    members = shell.stable(2, session_timeout_ms=10 * REBALANCE_MS)
    shell.advance(2 * REBALANCE_MS)
    assert shell.state == "Stable"
    assert [shell.heartbeat(each, 1) for each in members] == [ErrorCode.NONE] * 2


def test_who_waits_for_the_leader_needs_no_heartbeats() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    waiting = shell.sync(follower, 1)
    for _ in range(3):
        shell.advance(SESSION_MS - 1)
        shell.heartbeat(leader, 1)
    shell.sync(leader, 1, {follower: b"yours"})
    assert waiting.answer.assignment == b"yours"
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
    assert (led.answer.assignment, waiting.answer.assignment) == (b"", b"")
    assert shell.log == before
    assert shell.state == "PreparingRebalance"


def test_after_a_refusal_the_members_join_again_and_get_their_assignment() -> None:
    shell = Shell()
    leader, follower = completing(shell)
    shell.refuses = ErrorCode.NOT_COORDINATOR
    shell.sync(leader, 1, {})
    shell.refuses = None
    joined = {leader: shell.join(leader), follower: shell.join(follower)}
    assert {each.answer.generation_id for each in joined.values()} == {2}
    shell.settle(joined)
    assert shell.state == "Stable"
