"""Clients that have logged in and may do little: what changes under their requests, and what their records hold."""

from kaspar.base.errors import ErrorCode
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages.fetch import FetchResponse
from kaspar.protocol.messages.produce import ProduceResponse
from kaspar.records import Codec, Record, build_batch
from tests.integration.attacks.target import READ, TOPIC, WRITE, Guest, Memory, Target, allow, revoke_all
from tests.peers.observed import MIB, wait_until
from tests.peers.raw_client import NAMES_TOPICS, fetch_request, produce_request, request_frame

WAITING = 'kafka_server_delayedoperationpurgatory_numdelayedoperations{delayedOperation="Fetch"}'
SECRET = "secret"
FORBIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED
FRAMES = 50


def fetched(guest: Guest) -> int:
    """The error code of the one partition in the next response."""
    response = guest.response_to(ApiKey.FETCH, NAMES_TOPICS, 1)
    assert isinstance(response, FetchResponse)
    return response.responses[0].partitions[0].error_code


def produced(guest: Guest) -> int:
    response = guest.response_to(ApiKey.PRODUCE, NAMES_TOPICS, 1)
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


def test_a_fetch_that_waits_is_finished_by_the_acls_of_its_beginning_and_the_next_is_not(target: Target) -> None:
    with target.client() as admin, target.user("bob") as bob:
        allow(admin, "User:bob", READ)
        end = admin.offset_at(TOPIC)[1]
        waiting = request_frame(fetch_request(TOPIC, end, max_wait_ms=60_000), NAMES_TOPICS)
        before = target.metrics().get(WAITING, 0)
        bob.send(waiting)
        wait_until(lambda: target.metrics().get(WAITING, 0) > before, "the fetch waits")
        revoke_all(admin)
        assert admin.produce(TOPIC, [b"as promised"]).error_code == ErrorCode.NONE
        assert fetched(bob) == ErrorCode.NONE
        bob.send(waiting)
        assert fetched(bob) == FORBIDDEN


def test_of_pipelined_writes_none_is_done_after_the_acl_is_gone(target: Target) -> None:
    frame = request_frame(produce_request(TOPIC, bytes(build_batch([Record(1, b"k", b"v")]))), NAMES_TOPICS)
    with target.client() as admin, target.user("bob") as bob:
        allow(admin, "User:bob", WRITE)
        first = admin.offset_at(TOPIC)[1]
        bob.send(frame * FRAMES)
        assert produced(bob) == ErrorCode.NONE
        revoke_all(admin)
        bob.send(frame * FRAMES)
        codes = [ErrorCode.NONE, *(produced(bob) for _ in range(2 * FRAMES - 1))]
        assert codes == sorted(codes), "what was refused once is not done later"
        assert set(codes[FRAMES:]) == {FORBIDDEN}
        assert admin.offset_at(TOPIC)[1] - first == codes.count(ErrorCode.NONE)


def test_a_compression_bomb_takes_bounded_memory_and_nothing_where_its_client_may_not_write(target: Target) -> None:
    """Of one codec: tests/chaos/test_strangers.py has all of them."""
    bomb = bytes(build_batch([Record(1_700_000_000_000, None, bytes(200 * MIB))], codec=Codec.ZSTD))
    with target.client() as admin:
        assert admin.create_topic(SECRET) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        allow(admin, "User:bob", WRITE)
        with target.user("bob") as bob, target.user("bob") as greedy:
            memory = Memory(target)
            greedy.socket.settimeout(100)
            greedy.send(request_frame(produce_request(TOPIC, bomb), NAMES_TOPICS))
            bob.send(request_frame(produce_request(SECRET, bomb), NAMES_TOPICS))
            assert produced(bob) == FORBIDDEN
            target.still_serves()
            produced(greedy)
            memory.check()
        assert admin.offset_at(SECRET) == (0, 0)
        revoke_all(admin)
