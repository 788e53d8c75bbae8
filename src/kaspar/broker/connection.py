"""One client's connection: frames in, responses out in request order.

Rules:
- A frame's memory is taken as its bytes arrive, never on the word of its length prefix. While no frame is half
  received a connection owns no buffer at all: it reads into one that all connections of a listener share.
- A request is decoded, and its records appended, straight from the receive buffer. Whoever keeps bytes longer copies
  them.
- Later requests are worked on while earlier ones wait; their responses wait in slots until it is their turn.
- However many requests a client sends at once, others have their turn after a few milliseconds (`turn_s`).
- A client that does not read its responses, or has too many requests under way, is not read from until it catches up.
- Bytes that are not a request close the connection with one log line.

How answers get to the socket, records of segment files above all, is in broker/outgoing.py.
"""

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias, cast

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.base.metrics import Counter
from kaspar.broker import outgoing
from kaspar.broker.stalls import STALL_SECONDS
from kaspar.storage import FileSlice

log = get_log(__name__)

Buffers: TypeAlias = outgoing.Buffers

SHARED_BUFFER_BYTES: Final = 256 * 1024
FIRST_GROWTH_BYTES: Final = 64 * 1024
FRAME_STEP_BYTES: Final = 64 * 1024
MAX_REQUESTS_UNDER_WAY: Final = 256
MAX_LARGE_UNDER_WAY: Final = 4  # of those whose answers may take megabytes

NEARBY_US: Final = 250

_FRAME_SIZE = struct.Struct(">i")
_ROUND_TRIP_AT: Final = 148  # tcpi_min_rtt in Linux's tcp_info: the average one grows with what is under way
_ROUND_TRIP_US = struct.Struct("=I")


class Slot:
    """A response's place in the order of a connection. Filled once, with None where the request has no answer.

    Whoever fills it mostly holds it, and is held by it to be called back. So that neither keeps the other, and the
    records of an answer with them, until the collector comes, it lets go of everything when its turn has come.
    """

    __slots__ = ("_connection", "_lost", "_sent", "buffers", "filled", "large")

    def __init__(self, connection: "Connection", *, large: bool = False) -> None:
        self._connection = connection
        self.large = large
        self._sent: Callable[[], None] | None = None
        self._lost: Callable[[], None] | None = None
        self.buffers: Buffers | None = None
        self.filled = False

    def fill(self, buffers: Buffers | None, *, sent: Callable[[], None] | None = None) -> None:
        """Give the response; `sent` is called when it is this response's turn and it has been handed to the socket."""
        assert not self.filled, "a response slot was filled twice"
        self.buffers = buffers
        self.filled = True
        self._sent = sent
        self._connection.slot_filled()

    def handed_over(self) -> None:
        sent = self._sent
        self._let_go()
        if sent is not None:
            sent()

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call back if the connection is lost before its turn: nobody waits for this response any longer."""
        self._lost = callback

    def lost(self) -> None:
        lost = self._lost
        self._let_go()
        if lost is not None:
            lost()

    def _let_go(self) -> None:
        self._sent = self._lost = self.buffers = None

    def fail(self, problem: Exception) -> None:
        """A bug kept the response from being made. The connection ends, for it cannot go on without this response."""
        self._connection.owner.request_failed(self._connection, problem)


class RequestHandler(Protocol):
    """What a connection hands its frames to."""

    def handle(
        self, connection: "Connection", buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        """Work on one request: its response, None where it has none, or a slot that will be filled later."""
        ...


class KnownRequest(Protocol):
    """A request that came before. The next one of its bytes, but for a number or two, need not be read again."""

    def is_it(self, buffer: bytes | bytearray, start: int, end: int) -> bool: ...

    def again(
        self, connection: "Connection", buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        """Work on it. None where there is more to it this time: then nothing has been done."""
        ...


class ConnectionOwner(Protocol):
    """The listener a connection belongs to."""

    name: str
    max_request_bytes: int
    shared_buffer: bytearray
    shared_view: memoryview
    requests: RequestHandler
    overloaded: bool  # requests under way hold more memory than queued.max.request.bytes: take no more for now
    malformed_requests: Counter
    turn_s: float  # once a connection's requests have taken so long, its next ones wait for the next turn of the loop

    def opened(self, connection: "Connection") -> None: ...
    def closed(self, connection: "Connection") -> None: ...
    def run_blocking(self, work: Callable[[int], bytes], size: int) -> Awaitable[bytes]: ...
    def stalled(self, seconds: float) -> None: ...
    def call_soon(self, callback: Callable[[], None]) -> None: ...
    def request_failed(self, connection: "Connection", problem: Exception) -> None: ...


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_buffer",
        "_end",
        "_ending",
        "_held",
        "_large_under_way",
        "_outgoing",
        "_paused",
        "_slots",
        "_socket",
        "_start",
        "client_id",
        "closing",
        "known",
        "last_active",
        "owner",
        "peer",
        "transport",
    )

    transport: asyncio.Transport
    _outgoing: outgoing.Outgoing

    def __init__(self, owner: ConnectionOwner, peer: str, sock: socket.socket | None = None) -> None:
        """`sock`: what the transport writes to, where it may be written to directly."""
        self.owner = owner
        self._socket = sock
        self.peer = peer
        self.client_id: str | None = None
        self.last_active = time.perf_counter()
        self.closing = False
        self.known: dict[int, KnownRequest] = {}
        """What its client, a member of a group, has asked for before and asks for again, by API key."""
        self._buffer: bytearray | None = None
        self._start = 0
        self._end = 0
        self._slots: deque[Slot] = deque()
        self._large_under_way = 0
        self._paused = False
        self._held = False
        self._ending = False

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own class is none of asyncio's
        self._outgoing = outgoing.Outgoing(
            self.transport, self._socket, read_in_thread=self.owner.run_blocking, drained=self._drained
        )
        self.owner.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self._buffer = None
        self._outgoing.drop()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            slot.lost()
        self.owner.closed(self)

    def eof_received(self) -> bool:
        """The client sends no more, but may still be reading: what is under way is answered, then the connection
        closes.
        """
        self.closing = True
        return bool(self._slots or self._outgoing.queue)

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        buffer = self._buffer
        if buffer is None:
            return self.owner.shared_view
        if self._end == len(buffer):
            buffer = self._make_room(buffer)
        return memoryview(buffer)[self._end : self._read_up_to(buffer)]

    def buffer_updated(self, nbytes: int) -> None:
        started = self.last_active = time.perf_counter()
        buffer = self._buffer
        if buffer is None:
            rest = self._take_requests(self.owner.shared_buffer, 0, nbytes)
            if rest < nbytes and not self.is_closing:
                self._keep(self.owner.shared_buffer, rest, nbytes)
        else:
            self._end += nbytes
            self._go_on(buffer)
        worked = time.perf_counter() - started
        if worked > STALL_SECONDS:
            self.owner.stalled(worked)

    def pause_writing(self) -> None:
        self._outgoing.transport_is_full()
        self._pause()

    def resume_writing(self) -> None:
        self.last_active = time.perf_counter()
        self._outgoing.transport_is_empty()

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _go_on(self, buffer: bytearray) -> None:
        self._start = self._take_requests(buffer, self._start, self._end)
        if self._start == self._end:
            self._start = self._end = 0
            if len(buffer) < SHARED_BUFFER_BYTES:
                self._buffer = None  # the shared one takes more at once

    def _take_requests(self, buffer: bytearray, position: int, end: int) -> int:
        """Work on the whole requests in buffer[position:end]; where the rest begins."""
        owner = self.owner
        handle = owner.requests.handle
        out: list[bytes | bytearray | memoryview | FileSlice] = []
        received = self.last_active
        first, gives_way_at = position, time.perf_counter() + owner.turn_s
        try:
            while end - position >= 4:
                if (
                    self._paused
                    or len(self._slots) >= MAX_REQUESTS_UNDER_WAY
                    or self._large_under_way >= MAX_LARGE_UNDER_WAY
                    or owner.overloaded
                ):
                    self._pause()
                    break
                size: int = _FRAME_SIZE.unpack_from(buffer, position)[0]
                if size < 0 or size > owner.max_request_bytes:
                    raise MalformedBytes(
                        f"a request of {size} bytes is announced; socket.request.max.bytes is {owner.max_request_bytes}"
                    )
                frame_end = position + 4 + size
                if frame_end > end:
                    break
                if position > first and time.perf_counter() >= gives_way_at:
                    self._pause()
                    owner.call_soon(self.try_resume)
                    break
                response = handle(self, buffer, position + 4, frame_end, received)
                position = frame_end
                if response is None:
                    continue
                if isinstance(response, Slot):
                    if out:
                        # What is ready must be on its way before the slot's answer can be.
                        self._write(out)
                        out = []
                elif self._slots:
                    self._queue_ready(response)
                else:
                    out.extend(response)
                    if len(out) > 64 or len(response) > 1 or len(out[-1]) > 64 * 1024:
                        # Enough for one write; records are a buffer of their own where there are many. Now, so that a
                        # client which does not read is found out before more is made for it.
                        self._write(out)
                        out = []
        except MalformedBytes as problem:
            if out:
                self._write(out)
            owner.malformed_requests.value += 1
            self.refuse(str(problem))
            return end
        except Exception as problem:
            owner.request_failed(self, problem)
            return end
        if out:
            self._write(out)
        return position

    def hold(self, frame: memoryview) -> memoryview:
        """Take no further request until `go_on`; the bytes of this one stay as they are until then."""
        self._held = True
        if not self._paused:
            self._paused = True
            self.transport.pause_reading()
        # Nobody reads into this connection's own buffer meanwhile.
        return memoryview(bytearray(frame)) if frame.obj is self.owner.shared_buffer else frame

    def go_on(self) -> None:
        self._held = False
        self.try_resume()

    def _keep(self, source: bytearray, start: int, end: int) -> None:
        """Move the first part of a frame out of the shared buffer."""
        have = end - start
        buffer = bytearray(self._capacity_for(source, start, have))
        buffer[:have] = memoryview(source)[start:end]
        self._buffer, self._start, self._end = buffer, 0, have

    def _read_up_to(self, buffer: bytearray) -> int:
        """Not past a large frame: then the next one begins at the front of the buffer and need not be moved there."""
        if self._end - self._start >= 4:
            frame_end: int = self._start + 4 + _FRAME_SIZE.unpack_from(buffer, self._start)[0]
            if frame_end - self._start > FIRST_GROWTH_BYTES and self._end < frame_end:
                return min(frame_end, len(buffer))
        return len(buffer)

    def _make_room(self, buffer: bytearray) -> bytearray:
        """The buffer is full and its frame is not complete: move the frame to the front, into a larger buffer if
        needed.
        """
        have = self._end - self._start
        capacity = self._capacity_for(buffer, self._start, have)
        if capacity <= len(buffer) and self._start > 0:
            buffer[:have] = buffer[self._start : self._end]
        else:
            larger = bytearray(capacity)
            larger[:have] = memoryview(buffer)[self._start : self._end]
            self._buffer = buffer = larger
        self._start, self._end = 0, have
        return buffer

    @staticmethod
    def _capacity_for(buffer: bytearray, start: int, have: int) -> int:
        """What the frame at `start` may take now: all of it once half has arrived, otherwise twice what has arrived.

        All of it is rounded up, so that the next frame, which may be a little larger, finds room in the same buffer.
        """
        frame = 4 + _FRAME_SIZE.unpack_from(buffer, start)[0] if have >= 4 else FIRST_GROWTH_BYTES
        allowed = max(2 * have, FIRST_GROWTH_BYTES)
        return max(-(-frame // FRAME_STEP_BYTES) * FRAME_STEP_BYTES if frame <= allowed else allowed, have + 1)

    def release_idle_memory(self) -> None:
        """Called now and then: a connection with nothing half received gives its buffer back."""
        if self._buffer is not None and self._start == self._end:
            self._buffer = None
            self._start = self._end = 0

    def refuse(self, reason: str) -> None:
        log.warning(
            "closed a connection", reason=reason, peer=self.peer, client=self.client_id, listener=self.owner.name
        )
        self.close()

    @property
    def is_closing(self) -> bool:
        """No answer is taken any longer."""
        return self._ending or self.transport.is_closing()

    def close(self) -> None:
        """Close it when it has sent what it has."""
        self.closing = True
        if self._outgoing.queue:
            self._ending = True
            self._pause()
        else:
            self.transport.close()

    # -- responding --------------------------------------------------------------------------------------------------

    @property
    def is_nearby(self) -> bool:
        """Whether the quickest round trip to the client of late took less than NEARBY_US, as the system counts."""
        if self._socket is None:
            return False
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ROUND_TRIP_AT + _ROUND_TRIP_US.size)
        except OSError:
            return False  # it is being closed
        if len(info) < _ROUND_TRIP_AT + _ROUND_TRIP_US.size:
            return False  # of an older system
        round_trip_us: int = _ROUND_TRIP_US.unpack_from(info, _ROUND_TRIP_AT)[0]
        return round_trip_us < NEARBY_US

    def take_slot(self, *, large: bool = False) -> Slot:
        """`large`: the answer may take megabytes, so only a few such requests are worked on at a time."""
        slot = Slot(self, large=large)
        self.line_up(slot)
        return slot

    def line_up(self, slot: Slot) -> None:
        """Its response comes after those of all requests so far."""
        self._slots.append(slot)
        self._large_under_way += slot.large

    @property
    def requests_under_way(self) -> int:
        return len(self._slots)

    @property
    def responses_waiting(self) -> int:
        """How many are ready and wait for an earlier one."""
        return sum(slot.filled for slot in tuple(self._slots))

    def _queue_ready(self, response: Buffers) -> None:
        slot = self.take_slot(large=len(response) > 1)
        slot.buffers = response
        slot.filled = True

    def slot_filled(self) -> None:
        slots = self._slots
        if not slots or not slots[0].filled:
            return
        if len(slots) == 1:
            slot = slots.popleft()
            self._large_under_way -= slot.large
            if slot.buffers is not None:
                self._write(slot.buffers)
            slot.handed_over()
        else:
            self._send_filled(slots)
        if self.closing and not slots:
            self.close()
        elif self._paused:
            self.try_resume()

    def _send_filled(self, slots: deque[Slot]) -> None:
        """The responses whose turn it is, with one write."""
        out: list[bytes | bytearray | memoryview | FileSlice] = []
        sent: list[Slot] = []
        while slots and slots[0].filled:
            slot = slots.popleft()
            self._large_under_way -= slot.large
            if slot.buffers is not None:
                out.extend(slot.buffers)
            sent.append(slot)
        if out:
            self._write(out)
        for slot in sent:
            slot.handed_over()

    def _write(self, out: Buffers) -> None:
        if self._ending or self.transport.is_closing():
            return
        outgoing = self._outgoing
        if len(out) == 1 and not outgoing.queue:
            self.transport.write(out[0])  # type: ignore[arg-type]  # a slice never comes alone
            return
        outgoing.write(out)
        if outgoing.queue:
            self._pause()

    def _drained(self) -> None:
        if self.closing and (self._ending or not self._slots):
            # Not at once: asyncio's transport, which may be what calls, would say twice that the connection is lost.
            asyncio.get_running_loop().call_soon(self.transport.close)
        else:
            self.try_resume()

    # -- back-pressure -----------------------------------------------------------------------------------------------

    def _pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def try_resume(self) -> None:
        """Something that held this connection back is gone: take the requests already here, then read on."""
        if (
            not self._paused
            or self._held
            or self._outgoing.busy
            or self.is_closing
            or len(self._slots) >= MAX_REQUESTS_UNDER_WAY // 2
            or self._large_under_way >= MAX_LARGE_UNDER_WAY
            or self.owner.overloaded
        ):
            return
        self._paused = False
        if self._buffer is not None:
            self._go_on(self._buffer)
        if not self._paused and not self.is_closing:
            self.transport.resume_reading()
