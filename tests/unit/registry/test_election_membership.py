"""The group protocol of one member: a response in, the next request out."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kaspar.registry.election.identity import Assignment, AssignmentError, Identity
from kaspar.registry.election.membership import GroupTerms, Membership, NextStep, Phase

MINE = Identity("http", "a", 8081)
OTHER = Identity("http", "b", 8081)
TERMS = GroupTerms(
    "schema-registry", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, heartbeat_interval_ms=3_000, sticky=True
)


def joined(*members: tuple[str, Identity], leader: str = "me", generation: int = 1) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="sr",
        protocol_name="v0",
        leader=leader,
        member_id="me",
        members=tuple(JoinGroupResponseMember(member_id=each, metadata=who.encode()) for each, who in members),
    )


def join_failed(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, leader="", member_id=member_id, members=())


def synced(assignment: Assignment) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=assignment.encode())


def led_by_me(*, sticky: bool = True) -> Membership:
    membership = Membership(GroupTerms("schema-registry", 10_000, 60_000, 3_000, sticky), Identity("http", "a", 8081))
    membership.apply(joined(("me", MINE), ("them", OTHER)))
    membership.apply(synced(Assignment(leader_id="me", leader=MINE)))
    assert membership.is_leader
    return membership


def claims_to_lead(membership: Membership) -> bool:
    request = membership.next_request()
    assert isinstance(request, JoinGroupRequest)
    return Identity.decode(request.protocols[0].metadata).is_leader


def test_first_request_joins_with_confluents_protocol() -> None:
    request = Membership(TERMS, MINE).next_request()
    assert isinstance(request, JoinGroupRequest)
    assert (request.group_id, request.protocol_type, request.member_id) == ("schema-registry", "sr", "")
    assert [protocol.name for protocol in request.protocols] == ["v0"]
    assert Identity.decode(request.protocols[0].metadata) == MINE
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 60_000)


def test_member_joins_again_with_the_id_that_the_coordinator_gives_it() -> None:
    membership = Membership(TERMS, MINE)
    assert membership.apply(join_failed(ErrorCode.MEMBER_ID_REQUIRED, "sr-7")) is NextStep.AT_ONCE
    request = membership.next_request()
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == "sr-7"


def test_member_that_leads_the_group_assigns_the_same_to_all() -> None:
    membership = Membership(TERMS, MINE)
    assert membership.apply(joined(("me", MINE), ("them", OTHER))) is NextStep.AT_ONCE
    request = membership.next_request()
    assert isinstance(request, SyncGroupRequest)
    assert (request.generation_id, request.member_id) == (1, "me")
    assigned = {each.member_id: Assignment.decode(each.assignment) for each in request.assignments}
    assert assigned == dict.fromkeys(("me", "them"), Assignment(leader_id="me", leader=MINE))


def test_member_that_does_not_lead_the_group_assigns_nothing() -> None:
    membership = Membership(TERMS, MINE)
    membership.apply(joined(leader="them"))
    request = membership.next_request()
    assert isinstance(request, SyncGroupRequest)
    assert request.assignments == ()


def test_member_with_unreadable_metadata_is_assigned_to_and_cannot_lead() -> None:
    membership = Membership(TERMS, Identity("http", "z", 1))
    strange = JoinGroupResponseMember(member_id="strange", metadata=b"\x00\x01")
    own = JoinGroupResponseMember(member_id="me", metadata=Identity("http", "z", 1).encode())
    membership.apply(
        JoinGroupResponse(generation_id=1, leader="me", member_id="me", members=(strange, own), protocol_name="v0")
    )
    request = membership.next_request()
    assert isinstance(request, SyncGroupRequest)
    assert {each.member_id: Assignment.decode(each.assignment).leader_id for each in request.assignments} == {
        "strange": "me",
        "me": "me",
    }


def test_elected_member_sends_heartbeats_and_leads() -> None:
    membership = led_by_me()
    assert membership.leader == MINE
    request = membership.next_request()
    assert isinstance(request, HeartbeatRequest)
    assert (request.generation_id, request.member_id) == (1, "me")
    assert membership.apply(HeartbeatResponse()) is NextStep.AFTER_HEARTBEAT_INTERVAL


def test_leader_that_the_election_confirms_claims_to_lead_in_the_next_one() -> None:
    membership = led_by_me()
    assert membership.apply(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)) is NextStep.AT_ONCE
    assert claims_to_lead(membership)
    assert membership.is_leader


def test_leader_gives_up_its_place_during_a_rebalance_if_the_election_is_not_sticky() -> None:
    membership = led_by_me(sticky=False)
    membership.apply(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert not membership.is_leader
    assert membership.leader is None


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_leader_that_the_coordinator_forgot_leads_no_longer(code: ErrorCode) -> None:
    membership = led_by_me()
    membership.apply(HeartbeatResponse(error_code=code))
    assert not membership.is_leader
    assert membership.leader is None
    assert not claims_to_lead(membership)


def test_unknown_member_joins_as_a_new_one() -> None:
    membership = led_by_me()
    membership.apply(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    request = membership.next_request()
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == ""


def test_fenced_leader_takes_part_in_the_next_election_without_a_claim() -> None:
    membership = led_by_me()
    membership.rejoin()
    assert not membership.is_leader
    assert not claims_to_lead(membership)


def test_follower_knows_the_leader_through_a_rebalance() -> None:
    membership = Membership(TERMS, MINE)
    membership.apply(joined(leader="them"))
    membership.apply(synced(Assignment(leader_id="them", leader=OTHER)))
    membership.apply(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert membership.leader == OTHER
    assert not membership.is_leader


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_moved_coordinator_is_looked_up_and_the_membership_kept(code: ErrorCode) -> None:
    membership = led_by_me()
    assert membership.apply(HeartbeatResponse(error_code=code)) is NextStep.TO_ANOTHER_COORDINATOR
    assert isinstance(membership.next_request(), HeartbeatRequest)


def test_loading_coordinator_is_asked_again() -> None:
    membership = Membership(TERMS, MINE)
    assert membership.apply(join_failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)) is NextStep.AFTER_BACKOFF
    assert isinstance(membership.next_request(), JoinGroupRequest)


def test_generation_without_its_assignment_is_joined_again_after_a_disconnection() -> None:
    membership = Membership(TERMS, MINE)
    membership.apply(joined(("me", MINE)))
    membership.on_disconnect()
    assert membership.phase is Phase.JOIN


def test_rebalance_during_the_sync_is_joined() -> None:
    membership = Membership(TERMS, MINE)
    membership.apply(joined(("me", MINE)))
    rebalance = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
    assert membership.apply(rebalance) is NextStep.AT_ONCE
    assert isinstance(membership.next_request(), JoinGroupRequest)


def test_duplicate_urls_leave_the_group_without_a_leader_and_say_why() -> None:
    membership = led_by_me()
    membership.apply(joined(("me", MINE), ("twin", MINE), generation=2))
    membership.apply(synced(Assignment(AssignmentError.DUPLICATE_URLS, "me", MINE)))
    assert not membership.is_leader
    assert membership.leader is None
    assert membership.problem is not None
    assert "host.name" in membership.problem


def test_assignment_that_cannot_be_read_is_a_problem_and_no_crash() -> None:
    membership = led_by_me()
    membership.apply(joined(leader="them", generation=2))
    membership.apply(SyncGroupResponse(assignment=b"\x00"))
    assert membership.problem is not None
    assert not membership.is_leader


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL])
def test_refusal_that_no_retry_cures_is_raised(code: ErrorCode) -> None:
    with pytest.raises(Refused, match=r"joining in the group schema-registry"):
        Membership(TERMS, MINE).apply(join_failed(code))


def test_only_a_known_member_leaves() -> None:
    assert Membership(TERMS, MINE).leave_request() is None
    request = led_by_me().leave_request()
    assert request is not None
    assert [each.member_id for each in request.members] == ["me"]
