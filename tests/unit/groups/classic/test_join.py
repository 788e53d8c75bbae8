"""JoinGroup: how members come into a classic group, agree on a protocol, and begin a generation."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.classic.member import protocols_by_name
from kaspar.protocol.messages.join_group import JoinGroupRequestProtocol
from tests.unit.groups.shell import DELAY_MS, REBALANCE_MS, SESSION_MS, Shell


def test_a_new_member_is_asked_to_come_again_with_the_id_it_is_given() -> None:
    shell = Shell()
    first = shell.join(client_id="app")
    assert first.code is ErrorCode.MEMBER_ID_REQUIRED
    assert first.response.member_id.startswith("app-")
    again = shell.join(first.response.member_id, client_id="app")
    assert again.waits
    assert shell.state == "PreparingRebalance"


def test_before_version_4_a_new_member_is_in_at_once() -> None:
    shell = Shell()
    joined = shell.join(version=3)
    shell.advance(DELAY_MS)
    assert joined.code is ErrorCode.NONE
    assert joined.response.leader == joined.response.member_id


def test_a_static_member_needs_no_second_round() -> None:
    shell = Shell()
    joined = shell.join(instance_id="a")
    shell.advance(DELAY_MS)
    assert joined.code is ErrorCode.NONE
    assert joined.response.member_id.startswith("a-")


def test_a_member_id_that_is_not_used_expires_after_a_session() -> None:
    shell = Shell()
    given = shell.join().response.member_id
    shell.advance(SESSION_MS)
    assert shell.join(given).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_id_is_unknown_where_there_is_no_group() -> None:
    shell = Shell()
    joined = shell.join("client-1")
    assert joined.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.response.member_id == "client-1"
    assert not shell.shard.groups


def test_a_member_id_is_unknown_in_an_empty_group() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    shell.leave((member, None))
    assert shell.state == "Empty"
    assert shell.join(member).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_all_members_learn_the_generation_and_the_leader_learns_of_all() -> None:
    shell = Shell()
    joined = dict(shell.enter(protocols={"range": str(number).encode()}) for number in range(3))
    shell.advance(2 * DELAY_MS)
    leader, *followers = joined.values()
    assert {each.response.generation_id for each in joined.values()} == {1}
    assert {each.response.leader for each in joined.values()} == {leader.response.member_id}
    assert [each.response.members for each in followers] == [(), ()]
    assert [(each.member_id, each.metadata) for each in leader.response.members] == list(
        zip(joined, [b"0", b"1", b"2"], strict=True)
    )
    assert leader.response.protocol_type == "consumer"
    assert leader.response.protocol_name == "range"
    assert shell.state == "CompletingRebalance"


# -- the initial delay -------------------------------------------------------------------------------------------------


def test_an_empty_group_waits_for_more_members() -> None:
    shell = Shell()
    _, joined = shell.enter()
    shell.advance(DELAY_MS - 1)
    assert joined.waits
    shell.advance(1)
    assert joined.code is ErrorCode.NONE


def test_the_wait_is_extended_as_long_as_members_come() -> None:
    shell = Shell()
    _, first = shell.enter()
    for _ in range(3):
        shell.advance(DELAY_MS - 1)
        shell.enter()
    assert first.waits
    shell.advance(2 * DELAY_MS)
    assert first.code is ErrorCode.NONE


def test_the_wait_ends_with_the_rebalance_timeout_however_many_join() -> None:
    shell = Shell()
    _, first = shell.enter(rebalance_timeout_ms=2 * DELAY_MS + 1)
    waited_ms = 0
    while first.waits:
        shell.enter(rebalance_timeout_ms=2 * DELAY_MS + 1)
        shell.advance(500)
        waited_ms += 500
    assert waited_ms <= 3 * DELAY_MS


def test_without_a_delay_the_first_generation_begins_at_once() -> None:
    shell = Shell(GroupSettings(group_initial_rebalance_delay_ms=0))
    _, joined = shell.enter()
    shell.advance(0)
    assert joined.code is ErrorCode.NONE


def test_a_group_that_all_left_while_it_waited_is_empty() -> None:
    shell = Shell()
    member, joined = shell.enter()
    shell.leave((member, None))
    assert joined.code is ErrorCode.UNKNOWN_MEMBER_ID
    shell.advance(DELAY_MS)
    assert shell.state == "Empty"


# -- protocols ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {})])
def test_a_member_without_protocols_cannot_join(protocol_type: str, protocols: dict[str, bytes]) -> None:
    shell = Shell()
    joined = shell.join(protocol_type=protocol_type, protocols=protocols)
    assert joined.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not shell.shard.groups


def test_a_group_has_one_protocol_type() -> None:
    shell = Shell()
    shell.stable(1)
    assert shell.join(protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_may_take_another_protocol_type() -> None:
    shell = Shell()
    (member,) = shell.stable(1)
    shell.leave((member, None))
    shell.stable(1, protocol_type="connect")
    assert shell.classic().protocol_type == "connect"


def test_a_member_must_support_what_all_others_do() -> None:
    shell = Shell()
    shell.enter(protocols={"range": b"", "sticky": b""})
    shell.enter(protocols={"sticky": b""})
    assert shell.join(protocols={"range": b""}).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_most_votes_among_what_all_support_choose_the_protocol() -> None:
    shell = Shell()
    _, first = shell.enter(protocols={"only-mine": b"", "range": b"", "sticky": b""})
    shell.enter(protocols={"sticky": b"", "range": b""})
    shell.enter(protocols={"sticky": b"", "range": b""})
    shell.advance(2 * DELAY_MS)
    assert first.response.protocol_name == "sticky"


def test_of_two_protocols_of_one_name_the_first_counts() -> None:
    twice = [JoinGroupRequestProtocol(name="range", metadata=metadata) for metadata in (b"1", b"2")]
    assert protocols_by_name(twice) == {"range": b"1"}


# -- joining again -----------------------------------------------------------------------------------------------------


def test_a_new_member_makes_all_members_rejoin() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    _, joined = shell.enter()
    assert shell.state == "PreparingRebalance"
    assert shell.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    others = [shell.join(leader), shell.join(follower)]
    assert {each.response.generation_id for each in (joined, *others)} == {2}
    assert others[0].response.leader == leader


def test_a_pending_member_holds_the_rebalance_up_until_it_joins() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    shell.leave((leader, None))
    pending = shell.join().response.member_id
    again = shell.join(follower)
    assert again.waits
    shell.join(pending)
    assert again.response.generation_id == 2


def test_a_follower_that_rejoins_unchanged_gets_the_current_generation() -> None:
    shell = Shell()
    leader, follower = shell.stable(2)
    joined = shell.join(follower)
    assert joined.response.generation_id == 1
    assert joined.response.members == ()
    assert joined.response.leader == leader
    assert shell.state == "Stable"


def test_a_follower_with_other_metadata_makes_all_members_rejoin() -> None:
    shell = Shell()
    _, follower = shell.stable(2)
    shell.join(follower, protocols={"range": b"other", "roundrobin": b""})
    assert shell.state == "PreparingRebalance"


def test_a_join_of_the_leader_always_makes_all_members_rejoin() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    shell.join(leader)
    assert shell.state == "PreparingRebalance"


def test_a_lost_join_response_can_be_requested_again() -> None:
    shell = Shell()
    entered = dict([shell.enter(), shell.enter()])
    shell.advance(2 * DELAY_MS)
    assert shell.state == "CompletingRebalance"
    leader = next(iter(entered))
    again = shell.join(leader)
    assert again.response == entered[leader].response


def test_other_metadata_while_the_leader_assigns_restarts_the_rebalance() -> None:
    shell = Shell()
    leader, follower = dict([shell.enter(), shell.enter()])
    shell.advance(2 * DELAY_MS)
    waiting = shell.sync(follower, 1)
    shell.join(leader, protocols={"range": b"new"})
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert shell.state == "PreparingRebalance"


def test_of_two_joins_of_one_member_the_older_has_to_rejoin() -> None:
    shell = Shell()
    leader, _ = shell.stable(2)
    shell.enter()
    lost = shell.join(leader)
    kept = shell.join(leader)
    assert lost.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert kept.waits


def test_members_that_do_not_rejoin_in_time_are_removed() -> None:
    shell = Shell()
    leader, follower = shell.stable(2, session_timeout_ms=2 * REBALANCE_MS)
    joined = shell.join(leader, session_timeout_ms=2 * REBALANCE_MS)
    shell.advance(REBALANCE_MS - 1)
    assert joined.waits
    shell.advance(1)
    assert joined.response.generation_id == 2
    assert shell.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_of_all_members_counts() -> None:
    shell = Shell()
    joined = dict(
        shell.enter(rebalance_timeout_ms=timeout_ms, session_timeout_ms=2 * REBALANCE_MS)
        for timeout_ms in (REBALANCE_MS, 5_000)
    )
    shell.advance(2 * DELAY_MS)
    leader, _ = shell.settle(joined)
    again = shell.join(leader, rebalance_timeout_ms=5_000, session_timeout_ms=2 * REBALANCE_MS)
    shell.advance(5_000)
    assert again.code is ErrorCode.NONE


def test_before_version_1_the_session_timeout_is_the_rebalance_timeout() -> None:
    shell = Shell()
    shell.join(version=0, rebalance_timeout_ms=-1)
    assert [member.rebalance_timeout_ms for member in shell.classic().roster] == [SESSION_MS]


def test_a_new_leader_is_chosen_if_the_old_one_did_not_rejoin() -> None:
    shell = Shell()
    _, follower = shell.stable(2, session_timeout_ms=2 * REBALANCE_MS)
    joined = shell.join(follower, protocols={"range": b"new"}, session_timeout_ms=2 * REBALANCE_MS)
    shell.advance(REBALANCE_MS)
    assert joined.response.leader == follower
    assert [each.member_id for each in joined.response.members] == [follower]


# -- group.max.size ----------------------------------------------------------------------------------------------------


def limited(size: int) -> Shell:
    return Shell(GroupSettings(group_initial_rebalance_delay_ms=DELAY_MS, group_max_size=size))


def test_a_stable_group_takes_no_more_than_its_largest_size() -> None:
    shell = limited(2)
    shell.stable(2)
    assert shell.join().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert shell.state == "Stable"


def test_members_of_a_full_group_may_join_again() -> None:
    shell = limited(2)
    leader, follower = shell.stable(2)
    joined = [shell.join(leader), shell.join(follower)]
    assert [each.code for each in joined] == [ErrorCode.NONE, ErrorCode.NONE]


def test_of_those_on_the_way_in_the_last_are_turned_away() -> None:
    shell = limited(2)
    given = [shell.join().response.member_id for _ in range(3)]
    joined = [shell.join(member_id) for member_id in given]
    assert joined[2].code is ErrorCode.GROUP_MAX_SIZE_REACHED
    shell.advance(2 * DELAY_MS)
    assert [each.code for each in joined[:2]] == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_group_above_its_size_loses_the_last_to_join_again() -> None:
    shell = Shell()
    members = shell.stable(3)
    shell.settings = GroupSettings(group_initial_rebalance_delay_ms=DELAY_MS, group_max_size=2)
    shell.crash()
    assert shell.state == "PreparingRebalance"
    joined = [shell.join(member_id) for member_id in members]
    assert [each.code for each in joined] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]
