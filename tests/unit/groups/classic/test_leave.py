"""LeaveGroup: members go, by their own word or by an admin tool's."""

from kaspar.base.errors import ErrorCode
from tests.unit.groups.shell import DELAY_MS, REBALANCE_MS, SESSION_MS, Shell, Waiting


def codes(left: Waiting) -> list[ErrorCode]:
    assert left.code is ErrorCode.NONE
    return [ErrorCode(member.error_code) for member in left.response.members]


def test_a_member_that_leaves_is_removed_at_once_and_the_others_rejoin() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    assert codes(shell.leave((leader, None))) == [ErrorCode.NONE]
    assert shell.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = shell.join(follower)
    assert joined.response.leader == follower
    assert joined.response.generation_id == 2


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    shell = Shell()
    members = shell.stable(3)
    left = shell.leave(*((member, None) for member in members))
    assert codes(left) == [ErrorCode.NONE] * 3
    assert shell.state == "Empty"
    assert (shell.stored.members, shell.stored.generation) == ((), 2)


def test_each_member_has_its_own_result() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    left = shell.leave((leader, None), ("stranger", None), (follower, "no instance"))
    assert codes(left) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert [each.member_id for each in left.response.members] == [leader, "stranger", follower]


def test_unknown_members_that_leave_have_no_effect() -> None:
    shell = Shell()
    shell.stable(2)
    shell.leave(("stranger", None))
    assert shell.state == "Stable"


def test_leaving_an_unknown_group_is_refused() -> None:
    shell = Shell()
    assert codes(shell.leave(("a", None), ("", "b"))) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_a_pending_member_can_leave() -> None:
    shell = Shell()
    given = shell.join().response.member_id
    assert codes(shell.leave((given, None))) == [ErrorCode.NONE]
    assert shell.join(given).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_join_that_waits_is_refused_when_its_member_leaves() -> None:
    shell = Shell()
    member, joined = shell.enter()
    shell.leave((member, None))
    assert joined.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_that_waits_is_refused_when_its_member_leaves() -> None:
    shell = Shell()
    _, follower = dict([shell.enter(), shell.enter()])
    shell.advance(2 * DELAY_MS)
    waiting = shell.sync(follower, 1)
    shell.leave((follower, None))
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_waited_for_may_leave_instead() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    joined = shell.join(leader)
    shell.leave((follower, None))
    assert joined.response.generation_id == 2


def test_a_group_whose_log_refuses_to_say_that_it_is_empty_is_empty_all_the_same() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    shell.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    left = shell.leave((member, None))
    assert left.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shell.state == "Empty"
    shell.refuses = None
    shell.crash()
    assert shell.state == "Stable"
    shell.advance(SESSION_MS + REBALANCE_MS)
    assert shell.state == "Empty"
