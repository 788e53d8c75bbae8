"""After a load the sessions of all members begin, of very many groups in slices. Groups are asked meanwhile."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from kaspar.groups import resumption
from kaspar.groups.group import GroupTimer
from kaspar.groups.resumption import RESUME
from tests.unit.groups.shell import DELAY_MS, SESSION_MS, Shell

GROUPS = [f"g{number}" for number in range(5)]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Some groups, which are resumed one by one."""
    monkeypatch.setattr(resumption, "MAX_PER_SLICE", 1)
    shell = Shell()
    for group_id in GROUPS:
        shell.stable(2, group_id=group_id, session_timeout_ms=100 * SESSION_MS)
    return shell


def resumed(shell: Shell) -> set[str]:
    """The groups whose members have sessions."""
    return {timer.group_id for timer in shell.timers if isinstance(timer, GroupTimer)}


def members_of(shell: Shell, group_id: str) -> list[str]:
    return [member.member_id for member in shell.shard.describe(group_id, 6, shell.now).members]


def resume_one(shell: Shell) -> None:
    del shell.timers[RESUME]
    shell.carry_out(shell.shard.timer_fired(RESUME, shell.now))


def test_sessions_begin_a_slice_at_a_time(shell: Shell) -> None:
    shell.crash()
    for count in range(1, len(GROUPS)):
        assert resumed(shell) == set(GROUPS[:count])
        assert shell.timers[RESUME] == shell.now.steady_ms
        resume_one(shell)
    assert resumed(shell) == set(GROUPS)
    assert RESUME not in shell.timers
    shell.advance(100 * SESSION_MS)
    assert {group.state_name for group in shell.shard.groups.values()} == {"Empty"}


def test_a_group_that_is_asked_before_its_turn_goes_on_as_any_other(shell: Shell) -> None:
    members = members_of(shell, GROUPS[-1])
    shell.crash()
    assert GROUPS[-1] not in resumed(shell)
    assert shell.heartbeat(members[0], 1, group_id=GROUPS[-1]) is ErrorCode.NONE
    joined = shell.join(members[1], group_id=GROUPS[-1], protocols={"range": b"new"})
    shell.advance(0)
    assert resumed(shell) == set(GROUPS)
    assert shell.heartbeat(members[0], 1, group_id=GROUPS[-1]) is ErrorCode.REBALANCE_IN_PROGRESS
    again = shell.join(members[0], group_id=GROUPS[-1])
    assert (joined.code, again.code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert joined.response.generation_id == again.response.generation_id == 2


def test_a_group_that_goes_before_its_turn_is_not_resumed(shell: Shell) -> None:
    members = members_of(shell, GROUPS[-1])
    shell.crash()
    shell.leave(*((member_id, None) for member_id in members), group_id=GROUPS[-1])
    assert shell.delete(GROUPS[-1]).code is ErrorCode.NONE
    shell.advance(0)
    assert resumed(shell) == set(GROUPS[:-1])


def test_a_group_above_its_size_may_rebalance_before_its_turn(shell: Shell) -> None:
    members = members_of(shell, GROUPS[-1])
    shell.settings = GroupSettings(group_initial_rebalance_delay_ms=DELAY_MS, group_max_size=1)
    shell.crash()
    joined = [shell.join(members[0], group_id=GROUPS[-1], protocols={"range": b"new"})]
    assert shell.shard.groups[GROUPS[-1]].state_name == "PreparingRebalance"
    shell.advance(0)
    assert {each.state_name for each in shell.shard.groups.values()} == {"PreparingRebalance"}
    joined.append(shell.join(members[1], group_id=GROUPS[-1]))
    assert joined[1].code is ErrorCode.GROUP_MAX_SIZE_REACHED
