"""Static members (KIP-345): an instance keeps its place in the group while its process restarts."""

from typing import Any

from kaspar.base.errors import ErrorCode
from tests.unit.groups.shell import DELAY_MS, REBALANCE_MS, SESSION_MS, Shell


def stable(shell: Shell, *instances: str, **how: Any) -> dict[str, str]:
    """Member ids by instance id; the first leads. Each is assigned the name of its instance."""
    joined = {instance: shell.join(instance_id=instance, **how) for instance in instances}
    shell.advance(2 * DELAY_MS)
    ids = {instance: each.response.member_id for instance, each in joined.items()}
    assignments = {member_id: instance.encode() for instance, member_id in ids.items()}
    for instance in reversed(instances):
        shell.sync(ids[instance], shell.generation_id, assignments)
    assert shell.state == "Stable"
    return ids


def test_an_instance_that_comes_back_keeps_its_assignment_and_disturbs_nobody() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    back = shell.join(instance_id="b")
    assert back.code is ErrorCode.NONE
    assert back.response.generation_id == 1
    assert back.response.member_id != ids["b"]
    assert shell.state == "Stable"
    assert shell.sync(back.response.member_id, 1).response.assignment == b"b"
    assert shell.heartbeat(ids["a"], 1) is ErrorCode.NONE


def test_the_old_id_is_fenced() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    shell.join(instance_id="b")
    old = ids["b"]
    assert shell.heartbeat(old, 1, instance_id="b") is ErrorCode.FENCED_INSTANCE_ID
    assert shell.sync(old, 1, instance_id="b").code is ErrorCode.FENCED_INSTANCE_ID
    assert shell.join(old, instance_id="b").code is ErrorCode.FENCED_INSTANCE_ID
    assert shell.leave((old, "b")).response.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert shell.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_that_nobody_knows_is_no_member() -> None:
    shell = Shell()
    ids = stable(shell, "a")
    assert shell.heartbeat(ids["a"], 1, instance_id="z") is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_replacement_is_in_the_log_before_the_response() -> None:
    shell = Shell()
    stable(shell, "a", "b")
    back = shell.join(instance_id="b")
    shell.crash()
    assert shell.heartbeat(back.response.member_id, 1, instance_id="b") is ErrorCode.NONE
    assert shell.sync(back.response.member_id, 1).response.assignment == b"b"


def test_a_replacement_that_the_log_refuses_has_not_happened() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    shell.refuses = ErrorCode.NOT_COORDINATOR
    assert shell.join(instance_id="b").code is ErrorCode.NOT_COORDINATOR
    shell.refuses = None
    assert shell.heartbeat(ids["b"], 1, instance_id="b") is ErrorCode.NONE
    assert len(shell.classic().roster) == 2


def test_a_returning_leader_leads_and_skips_the_assignment() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    back = shell.join(instance_id="a", version=9)
    assert back.response.leader == back.response.member_id != ids["a"]
    assert back.response.skip_assignment
    assert {each.group_instance_id for each in back.response.members} == {"a", "b"}


def test_before_version_9_a_returning_leader_does_not_learn_that_it_leads() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    back = shell.join(instance_id="a", version=8)
    assert back.response.leader == ids["a"]
    assert not back.response.skip_assignment
    assert back.response.members == ()
    assert shell.classic().roster.leader_id == back.response.member_id


def test_a_returning_follower_gets_no_member_list() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    back = shell.join(instance_id="b", version=9)
    assert back.response.leader == ids["a"]
    assert not back.response.skip_assignment
    assert back.response.members == ()


def test_all_members_rejoin_if_a_returning_member_changes_the_protocol() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b", protocols={"range": b"", "roundrobin": b""})
    back = shell.join(instance_id="b", protocols={"roundrobin": b""})
    assert back.waits
    assert shell.state == "PreparingRebalance"
    shell.join(ids["a"], instance_id="a")
    assert back.response.protocol_name == "roundrobin"


def test_one_that_comes_back_while_all_join_again_joins_in_its_own_place() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    waiting = shell.join(ids["a"], instance_id="a")
    lost = shell.join(ids["b"], instance_id="b", protocols={"range": b"new"})
    assert (waiting.code, lost.code) == (ErrorCode.NONE, ErrorCode.NONE)
    shell.join(ids["a"], instance_id="a", protocols={"range": b"new"})
    back = shell.join(instance_id="b")
    assert back.code is ErrorCode.NONE
    assert back.response.generation_id == 3
    assert len(shell.classic().roster) == 2


def test_a_join_that_waits_under_the_old_id_is_fenced() -> None:
    shell = Shell()
    old = shell.join(instance_id="a")
    new = shell.join(instance_id="a")
    assert old.code is ErrorCode.FENCED_INSTANCE_ID
    shell.advance(2 * DELAY_MS)
    assert new.code is ErrorCode.NONE


def test_a_sync_that_waits_under_the_old_id_is_fenced() -> None:
    shell = Shell()
    joined = [shell.join(instance_id=instance) for instance in ("a", "b")]
    shell.advance(2 * DELAY_MS)
    waiting = shell.sync(joined[1].response.member_id, 1)
    shell.join(instance_id="b")
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    assert shell.state == "PreparingRebalance"


def test_an_instance_that_is_away_is_kept_until_its_session_ends() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b", session_timeout_ms=2 * REBALANCE_MS)
    again = shell.join(ids["a"], instance_id="a", session_timeout_ms=2 * REBALANCE_MS)
    shell.advance(REBALANCE_MS)
    assert {each.group_instance_id for each in again.response.members} == {"a", "b"}
    shell.sync(ids["a"], 2, {ids["b"]: b"still yours"})
    back = shell.join(instance_id="b")
    assert shell.sync(back.response.member_id, 2).response.assignment == b"still yours"


def test_a_group_of_absent_static_members_waits_for_them() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b", session_timeout_ms=10 * REBALANCE_MS)
    shell.leave((ids["a"], "a"))
    shell.advance(3 * REBALANCE_MS)
    assert shell.state == "PreparingRebalance"
    assert shell.join(ids["b"], instance_id="b").response.generation_id == 2


def test_an_admin_tool_removes_an_instance_by_its_name() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    left = shell.leave(("", "b"), ("", "z"))
    assert [each.error_code for each in left.response.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert shell.heartbeat(ids["b"], 1, instance_id="b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_one_that_came_back_is_its_own() -> None:
    shell = Shell()
    ids = stable(shell, "a", "b")
    shell.advance(SESSION_MS - 1)
    shell.heartbeat(ids["a"], 1)
    back = shell.join(instance_id="b").response.member_id
    shell.advance(SESSION_MS - 1)
    assert shell.state == "Stable"
    shell.heartbeat(ids["a"], 1)
    shell.advance(1)
    assert shell.heartbeat(back, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_what_the_old_id_owed_is_forgotten_with_it() -> None:
    shell = Shell()
    how: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    leader, silent = (shell.join(instance_id=instance, **how) for instance in ("a", "b"))
    shell.advance(2 * DELAY_MS)
    shell.sync(leader.response.member_id, 1, {silent.response.member_id: b"yours"})
    back = shell.join(instance_id="b", **how)
    shell.advance(2 * REBALANCE_MS)
    assert shell.state == "Stable"
    assert shell.sync(back.response.member_id, 1).response.assignment == b"yours"
