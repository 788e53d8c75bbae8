"""A connection fed with random frames in random pieces, with responses late and in any order, while its client
sometimes does not read and the broker is sometimes overloaded: every response comes once and in order, nothing is lost,
few requests are under way at a time, and the buffer for what is half received never outgrows one frame.
"""

import math
import struct
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaspar.base.metrics import Counter
from kaspar.network.connection import (
    MAX_LARGE_UNDER_WAY,
    MAX_REQUESTS_UNDER_WAY,
    Buffers,
    Connection,
    RequestHandler,
    Slot,
)
from kaspar.network.receive_buffer import FIRST_GROWTH_BYTES
from tests.unit.broker.wire import RecordingTransport, frame

AT_ONCE, LATE, LARGE_AND_LATE, NEVER, RELEASING = range(5)
LARGEST = 300_000


class Owner:
    """Responds to each request with its number, at once, later, or not at all, as its first byte says."""

    name = "PLAINTEXT"
    max_request_bytes = LARGEST

    def __init__(self) -> None:
        self.shared_buffer = bytearray(64 * 1024)
        self.shared_view = memoryview(self.shared_buffer)
        self.requests: RequestHandler = self
        self.overloaded = False
        self.turn_s = math.inf
        self.malformed_requests = Counter()
        self.waiting: list[tuple[bytes, Slot]] = []
        self.handled: list[bytes] = []

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        kind, number, size = struct.unpack_from(">BII", buffer, start)
        assert size == end - start
        assert set(buffer[start + 9 : end]) <= {number % 251}, "the bytes of a request are its own"
        response = struct.pack(">I", number)
        self.handled.append(response)
        match kind:
            case 4:  # as a record that commits what an earlier request waits for
                self.respond_to_one(0)
                return (response,)
            case 0:
                return (response,)
            case 1 | 2:
                slot = connection.take_slot(large=kind == LARGE_AND_LATE)
                self.waiting.append((response, slot))
                return slot
            case _:
                return None

    def respond_to_one(self, index: int) -> None:
        if self.waiting:
            response, slot = self.waiting.pop(index)
            slot.fill((response,))

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...
    async def run_blocking(self, work: Callable[[int], bytes], size: int) -> bytes:
        return work(size)

    def stalled(self, seconds: float) -> None: ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        raise AssertionError("a turn is as long as it takes here")

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        raise problem


class ConnectionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.owner = Owner()
        self.transport = RecordingTransport()
        self.connection = Connection(self.owner, "127.0.0.1:5")
        self.connection.connection_made(self.transport)
        self.expected = bytearray()
        self.sent_by_client = 0
        self.on_its_way = bytearray()  # sent, and not yet read by the broker
        self.client_reads = True

    # -- what a client, a network and a broker do --------------------------------------------------------------------

    @rule(
        kind=st.sampled_from([AT_ONCE, AT_ONCE, LATE, LARGE_AND_LATE, NEVER, RELEASING]),
        padding=st.one_of(st.integers(0, 50), st.integers(60_000, 140_000)),
        times=st.integers(1, 60),
    )
    def client_sends(self, kind: int, padding: int, times: int) -> None:
        for _ in range(times if padding <= 50 else 1):
            number = self.sent_by_client
            self.sent_by_client += 1
            self.on_its_way += frame(struct.pack(">BII", kind, number, 9 + padding) + bytes([number % 251]) * padding)
            if kind != NEVER:
                self.expected += struct.pack(">I", number)

    @precondition(lambda self: self.on_its_way and self.transport.is_reading())
    @rule(at_most=st.one_of(st.integers(1, 20), st.integers(1, 200_000)))
    def bytes_arrive(self, at_most: int) -> None:
        buffer = memoryview(self.connection.get_buffer(-1))
        count = min(len(buffer), len(self.on_its_way), at_most)
        assert count > 0
        buffer[:count] = self.on_its_way[:count]
        del self.on_its_way[:count]
        self.connection.buffer_updated(count)

    @precondition(lambda self: self.owner.waiting)
    @rule(data=st.data())
    def one_gets_a_response(self, data: st.DataObject) -> None:
        self.owner.respond_to_one(data.draw(st.integers(0, len(self.owner.waiting) - 1)))

    @rule()
    def client_stops_or_goes_on_reading(self) -> None:
        self.client_reads = not self.client_reads
        if self.client_reads:
            self.connection.resume_writing()
        else:
            self.connection.pause_writing()

    @rule()
    def load_changes(self) -> None:
        self.owner.overloaded = not self.owner.overloaded
        if not self.owner.overloaded:
            self.connection.try_resume()

    @rule()
    def sweep(self) -> None:
        self.connection.release_idle_memory()

    def teardown(self) -> None:
        """Once nothing holds the connection back, every request gets its response."""
        if not self.client_reads:
            self.client_stops_or_goes_on_reading()
        if self.owner.overloaded:
            self.load_changes()
        while self.on_its_way or self.owner.waiting:
            self.owner.respond_to_one(-1)
            if self.on_its_way and self.transport.is_reading():
                self.bytes_arrive(200_000)
            assert self.owner.waiting or self.transport.is_reading(), "nothing is under way, and nothing is read"
        assert self.transport.sent == self.expected
        assert len(self.owner.handled) == self.sent_by_client
        assert self.connection.requests_under_way == 0

    # -- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def responses_are_in_order(self) -> None:
        assert self.expected.startswith(self.transport.sent)

    @invariant()
    def requests_are_worked_on_in_order(self) -> None:
        assert self.owner.handled == sorted(self.owner.handled)

    @invariant()
    def few_are_under_way(self) -> None:
        assert self.connection.requests_under_way <= MAX_REQUESTS_UNDER_WAY
        assert sum(slot.large for _, slot in self.owner.waiting) <= MAX_LARGE_UNDER_WAY

    @invariant()
    def the_buffer_is_no_larger_than_a_frame(self) -> None:
        held = self.connection.get_buffer(-1)
        if held is not self.owner.shared_view:
            room = len(memoryview(held))
            assert room <= max(FIRST_GROWTH_BYTES, LARGEST + 4)


TestConnection = ConnectionMachine.TestCase
TestConnection.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
