"""A follower's side of fetch sessions (KIP-227), against the leader's."""

import random
import uuid

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import random_uuid
from kaspar.broker.fetch.sessions import FetchedPartition, FetchSessions
from kaspar.replication.fetch_session import INITIAL_EPOCH, FollowerFetchSession, SessionRequest
from kaspar.replication.fetches import PartitionKey, Position

TOPIC = random_uuid()


def at(offset: int) -> Position:
    return Position(offset, 0, 0, 0)


def wanted(**offsets: int | None) -> dict[PartitionKey, Position | None]:
    return {(TOPIC, int(name[1:])): None if offset is None else at(offset) for name, offset in offsets.items()}


def test_the_first_request_names_everything_and_later_ones_changes() -> None:
    session = FollowerFetchSession()
    assert session.request(wanted(p0=1, p1=2)).epoch == INITIAL_EPOCH
    session.responded(ErrorCode.NONE, 7)
    second = session.request(wanted(p0=5, p1=2))
    assert (second.session_id, second.epoch, set(second.named)) == (7, 1, {(TOPIC, 0)})
    session.responded(ErrorCode.NONE, 7)
    third = session.request(wanted(p0=None, p2=0, p3=None))
    assert (third.epoch, set(third.named), third.forgotten) == (2, {(TOPIC, 2)}, ((TOPIC, 0),))
    assert session.asked == wanted(p1=2, p2=0)
    session.reset()
    assert session.request({}).named == wanted(p1=2, p2=0)


def test_a_leader_without_room_for_a_session_gets_full_requests() -> None:
    session = FollowerFetchSession()
    for _ in range(3):
        request = session.request(wanted(p0=1))
        assert (request.session_id, request.epoch, len(request.named)) == (0, INITIAL_EPOCH, 1)
        session.responded(ErrorCode.NONE, 0)


def test_an_unknown_session_starts_over_and_another_error_closes_it_too() -> None:
    session = FollowerFetchSession()
    session.request(wanted(p0=1))
    session.responded(ErrorCode.NONE, 7)
    session.responded(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    request = session.request(wanted(p0=1))
    assert (request.session_id, request.epoch, len(request.named)) == (7, INITIAL_EPOCH, 1)
    session.responded(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.request(wanted(p0=1)).session_id == 0


def test_whatever_happens_the_leader_fetches_what_the_follower_wants() -> None:
    """Random positions, evictions and lost responses, with the sessions of a broker as the other side."""
    rng = random.Random(5)
    leader, follower = FetchSessions(1), FollowerFetchSession()
    for turn in range(500):
        positions = {(TOPIC, index): at(rng.randrange(3)) for index in range(5) if rng.random() < 0.7}
        request = follower.request({(TOPIC, index): positions.get((TOPIC, index)) for index in range(5)})
        try:
            served, session_id = serve(leader, request, turn)
        except Refused as refusal:
            follower.responded(refusal.code, 0)
            continue
        assert served == {key: position.fetch_offset for key, position in positions.items()}
        if rng.random() < 0.1:
            follower.reset()  # the response is lost, and with it the connection
        else:
            follower.responded(ErrorCode.NONE, session_id)
        if rng.random() < 0.05 and session_id:
            leader.close(session_id)


def serve(leader: FetchSessions, request: SessionRequest, now: float) -> tuple[dict[tuple[object, int], int], int]:
    named = [FetchedPartition(topic, index, at.fetch_offset, 1) for (topic, index), at in request.named.items()]
    if request.epoch == INITIAL_EPOCH:
        leader.close(request.session_id)
        session = leader.create(named, privileged=True, uses_topic_ids=True, now=1000.0 * now)
        if session is None:
            return {each.key: each.fetch_offset for each in named}, 0
    else:
        session = leader.resume(request.session_id, request.epoch, uses_topic_ids=True, now=1000.0 * now)
        session.update(named, request.forgotten)
        if not session.partitions:
            leader.close(session.session_id)
            return {}, 0
        session.next_epoch()
    keys: dict[tuple[str | uuid.UUID, int], FetchedPartition] = session.partitions
    return {key: each.fetch_offset for key, each in keys.items()}, session.session_id
