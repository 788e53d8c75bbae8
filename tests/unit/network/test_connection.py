"""A connection over a transport that only remembers: framing, order, memory and back-pressure without a socket."""

import math
import struct
from collections.abc import Callable

import pytest

from kaspar.base.metrics import Counter
from kaspar.network.connection import (
    MAX_REQUESTS_UNDER_WAY,
    Buffers,
    Connection,
    RequestHandler,
    Slot,
)
from kaspar.network.receive_buffer import FIRST_GROWTH_BYTES
from tests.unit.broker.wire import RecordingTransport, frame, receive


class Owner:
    """Responds to each request with its own bytes in capitals, at once or when the test asks for it."""

    name = "PLAINTEXT"
    max_request_bytes = 10_000_000

    def __init__(self) -> None:
        self.shared_buffer = bytearray(256 * 1024)
        self.shared_view = memoryview(self.shared_buffer)
        self.requests: RequestHandler = self
        self.overloaded = False
        self.turn_s = math.inf
        self.soon: list[Callable[[], None]] = []
        self.malformed_requests = Counter()
        self.waiting: list[tuple[bytes, Slot]] = []
        self.delays: Callable[[bytes], bool] = lambda request: False
        self.failed: list[Exception] = []

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        request = bytes(buffer[start:end])
        if request == b"bug":
            raise ZeroDivisionError("a bug")
        if request == b"no response":
            return None
        if self.delays(request):
            slot = connection.take_slot()
            self.waiting.append((request, slot))
            return slot
        return (request.upper(),)

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...

    async def run_blocking(self, work: Callable[[int], bytes], size: int) -> bytes:
        return work(size)

    def stalled(self, seconds: float) -> None: ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        self.failed.append(problem)
        connection.transport.abort()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def transport() -> RecordingTransport:
    return RecordingTransport()


@pytest.fixture
def connection(owner: Owner, transport: RecordingTransport) -> Connection:
    connection = Connection(owner, "127.0.0.1:5")
    connection.connection_made(transport)
    return connection


def test_frames_are_found_however_the_bytes_come(connection: Connection, transport: RecordingTransport) -> None:
    receive(connection, frame(b"one") + frame(b"two") + frame(b"three"), at_once=1)
    receive(connection, frame(b"four") + frame(b"five"))
    receive(connection, (frame(b"six") + frame(b"seven"))[:-2])
    assert transport.sent == b"ONETWOTHREEFOURFIVESIX"
    receive(connection, b"en")
    assert transport.sent.endswith(b"SEVEN")


def test_a_large_frame_is_put_together(connection: Connection, transport: RecordingTransport) -> None:
    body = bytes(range(97, 123)) * 200_000
    receive(connection, frame(body) + frame(b"next"), at_once=100_000)
    assert transport.sent == body.upper() + b"NEXT"


def test_memory_follows_the_bytes_not_the_length_prefix(connection: Connection) -> None:
    receive(connection, struct.pack(">i", 9_999_999) + b"x" * 10)
    assert len(memoryview(connection.get_buffer(-1))) <= FIRST_GROWTH_BYTES
    receive(connection, b"x" * 200_000)
    assert len(memoryview(connection.get_buffer(-1))) <= 2 * 200_014


def test_a_quiet_connection_gives_its_buffer_back(connection: Connection, owner: Owner) -> None:
    receive(connection, frame(b"y" * 300_000))
    connection.release_idle_memory()
    assert connection.get_buffer(-1) is owner.shared_view
    receive(connection, frame(b"half a frame")[:-1])
    connection.release_idle_memory()
    assert connection.get_buffer(-1) is not owner.shared_view


@pytest.mark.parametrize("size", [-1, -(2**31), 10_000_001, 2**31 - 1])
def test_an_impossible_length_closes_the_connection(
    connection: Connection, transport: RecordingTransport, size: int
) -> None:
    receive(connection, frame(b"fine") + struct.pack(">i", size) + b"rest")
    assert transport.sent == b"FINE"
    assert transport.is_closing()


def test_responses_keep_the_order_of_requests(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.delays = lambda request: request.startswith(b"slow")
    receive(connection, frame(b"a") + frame(b"slow1") + frame(b"b") + frame(b"slow2") + frame(b"c"))
    assert transport.sent == b"A"
    owner.waiting[1][1].fill((b"S2",))
    assert transport.sent == b"A"
    owner.waiting[0][1].fill((b"S1",))
    assert transport.sent == b"AS1BS2C"
    receive(connection, frame(b"d"))
    assert transport.sent.endswith(b"D")


def test_requests_that_take_long_leave_the_others_of_their_connection_to_the_next_turn(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.turn_s = 0
    receive(connection, frame(b"one") + frame(b"two") + frame(b"three") + frame(b"fo")[:5])
    sent_so_far = [bytes(transport.sent)]
    while owner.soon:
        assert not transport.is_reading()
        (callback,), owner.soon = owner.soon, []
        callback()
        sent_so_far.append(bytes(transport.sent))

    assert sent_so_far == [b"ONE", b"ONETWO", b"ONETWOTHREE"]
    assert transport.is_reading()
    receive(connection, frame(b"fo")[5:])
    assert bytes(transport.sent) == b"ONETWOTHREEFO"


def test_a_request_without_a_response_delays_no_other(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.delays = lambda request: request == b"slow"
    receive(connection, frame(b"slow") + frame(b"no response") + frame(b"b"))
    owner.waiting[0][1].fill(None)
    assert transport.sent == b"B"


def test_too_many_requests_under_way_stop_the_reading_until_half_are_done(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.delays = lambda request: True
    receive(connection, frame(b"x") * (MAX_REQUESTS_UNDER_WAY + 10))
    assert len(owner.waiting) == MAX_REQUESTS_UNDER_WAY
    assert not transport.is_reading()
    for _, slot in owner.waiting[: MAX_REQUESTS_UNDER_WAY // 2 + 1]:
        slot.fill((b".",))
    assert transport.is_reading()
    assert len(owner.waiting) == MAX_REQUESTS_UNDER_WAY + 10


def test_a_client_that_does_not_read_is_not_read_from(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    connection.pause_writing()
    assert not transport.is_reading()
    receive(connection, frame(b"a") + frame(b"b"))
    assert transport.sent == b""
    connection.resume_writing()
    assert transport.is_reading()
    assert transport.sent == b"AB"


def test_an_overloaded_broker_takes_no_request_until_it_is_relieved(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.overloaded = True
    receive(connection, frame(b"a"))
    assert transport.sent == b""
    assert not transport.is_reading()
    owner.overloaded = False
    connection.try_resume()
    assert transport.sent == b"A"
    assert transport.is_reading()


def test_a_bug_in_a_handler_closes_that_connection_only(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    receive(connection, frame(b"bug"))
    assert transport.is_closing()
    assert isinstance(owner.failed[0], ZeroDivisionError)


def test_a_client_that_has_finished_sending_still_gets_its_responses(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.delays = lambda request: True
    receive(connection, frame(b"last"))
    assert connection.eof_received()
    owner.waiting[0][1].fill((b"bye",))
    assert transport.sent == b"bye"
    assert transport.is_closing()


def test_filling_a_slot_twice_is_a_broken_invariant(connection: Connection, owner: Owner) -> None:
    owner.delays = lambda request: True
    receive(connection, frame(b"x"))
    owner.waiting[0][1].fill((b".",))
    with pytest.raises(AssertionError):
        owner.waiting[0][1].fill((b".",))


def test_waiters_for_a_connection_are_notified_of_its_loss(connection: Connection, owner: Owner) -> None:
    owner.delays = lambda request: True
    receive(connection, frame(b"a") + frame(b"b"))
    lost: list[str] = []
    owner.waiting[0][1].when_lost(lambda: lost.append("a"))
    connection.connection_lost(None)
    assert lost == ["a"]
    owner.waiting[1][1].fill((b"too late",))


def test_a_response_that_a_bug_kept_from_being_made_ends_the_connection(
    connection: Connection, owner: Owner, transport: RecordingTransport
) -> None:
    owner.delays = lambda request: True
    receive(connection, frame(b"a"))
    owner.waiting[0][1].fail(ZeroDivisionError("a bug"))
    assert transport.is_closing()
    assert isinstance(owner.failed[0], ZeroDivisionError)
