"""One client's connection: frames in, responses out in request order.

Rules:
- While no frame has been received partially, a connection owns no buffer at all: it reads into one that all connections
  of a listener share. A partially received frame has its own buffer (network/receive_buffer.py).
- A request is decoded, and its records appended, straight from the receive buffer. What is kept longer is copied.
- Later requests are handled while earlier ones wait; their responses wait in slots until it is their turn.
- However many requests a client sends at once, other clients get their turn after a few milliseconds (`turn_s`).
- A client that does not read its responses, has too many requests under way, or is over its quota is not read from
  until it catches up.
- Bytes that are not a request close the connection with one log line.

How responses are sent to the socket, particularly records of segment files, is in network/outgoing.py.
"""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias, cast

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.base.metrics import Counter
from kaspar.base.stalls import STALL_SECONDS
from kaspar.network import outgoing
from kaspar.network.connected_client import ConnectedClient
from kaspar.network.gates import Permitted, Principal, Rejected
from kaspar.network.receive_buffer import FRAME_SIZE, ReceiveBuffer
from kaspar.network.recognition import KnownRequest
from kaspar.network.round_trip import min_round_trip_us
from kaspar.storage import FileSlice

log = get_log(__name__)

Buffers: TypeAlias = outgoing.Buffers

SHARED_BUFFER_BYTES: Final = 256 * 1024
MAX_REQUESTS_UNDER_WAY: Final = 256
MAX_LARGE_UNDER_WAY: Final = 4  # requests whose responses may take megabytes

NEARBY_US: Final = 250
CLIENT_ID_IN_LOG: Final = 200


class Slot:
    """A response's place in the order of a connection. Filled once, with None where the request has no response.

    The request that fills it usually references it, and is referenced by it for the callback. When its turn has come it
    drops all references, so that this cycle, and the records of a response with it, does not live until the garbage
    collector runs.
    """

    __slots__ = ("_lost", "buffers", "connection", "filled", "large")

    def __init__(self, connection: "Connection", *, large: bool = False) -> None:
        self.connection = connection
        self.large = large
        self._lost: Callable[[], None] | None = None
        self.buffers: Buffers | None = None
        self.filled = False

    def fill(self, buffers: Buffers | None) -> None:
        assert not self.filled, "a response slot was filled twice"
        self.buffers = buffers
        self.filled = True
        self.connection.slot_filled()

    def handed_over(self) -> None:
        """Called when this response has been handed to the socket in its turn."""
        self._release()

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Set a callback for when the connection is lost before its turn: the response is not needed then."""
        self._lost = callback

    def lost(self) -> None:
        lost = self._lost
        self._release()
        if lost is not None:
            lost()

    def _release(self) -> None:
        self._lost = self.buffers = None

    def fail(self, problem: Exception) -> None:
        """Close the connection, which cannot go on without this response. A bug has prevented it."""
        self.connection.owner.request_failed(self.connection, problem)


class RequestHandler(Protocol):
    """Handles the frames of a connection."""

    def handle(
        self, connection: "Connection", buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        """Handle one request. Returns its response, None if it has none, or a slot that will be filled later."""
        ...


class Authenticator(RequestHandler, Protocol):
    """Handles the frames of a connection while its client must authenticate or re-authenticate."""

    def connection_lost(self) -> None: ...


class ConnectionOwner(Protocol):
    """The listener a connection belongs to."""

    name: str
    max_request_bytes: int
    shared_buffer: bytearray
    shared_view: memoryview
    requests: RequestHandler
    overloaded: bool  # requests under way hold more than queued.max.request.bytes: take no more for now
    malformed_requests: Counter
    turn_s: float  # requests of a connection beyond this time wait for the next turn of the loop

    def opened(self, connection: "Connection") -> None: ...
    def closed(self, connection: "Connection") -> None: ...
    def run_blocking(self, work: Callable[[int], bytes], size: int) -> Awaitable[bytes]: ...
    def stalled(self, seconds: float) -> None: ...
    def call_soon(self, callback: Callable[[], None]) -> None: ...
    def request_failed(self, connection: "Connection", problem: Exception) -> None: ...


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_ending",
        "_held",
        "_large_under_way",
        "_outgoing",
        "_own_buffer",
        "_paused",
        "_slots",
        "_socket",
        "_throttled",
        "authenticator",
        "client",
        "client_id",
        "closing",
        "is_encrypted",
        "is_follower",
        "known",
        "last_active",
        "max_request_bytes",
        "owner",
        "peer",
        "permitted",
        "principal",
        "security_protocol",
        "transport",
    )

    transport: asyncio.Transport
    _outgoing: outgoing.Outgoing

    def __init__(
        self, owner: ConnectionOwner, peer: str, sock: socket.socket | None = None, *, is_encrypted: bool = False
    ) -> None:
        """`sock` is the transport's own. It is written to directly, unless the transport encrypts."""
        self.owner = owner
        self._socket = sock
        self.is_encrypted = is_encrypted
        self.max_request_bytes = owner.max_request_bytes
        self.authenticator: Authenticator | None = None
        self.security_protocol = "PLAINTEXT"
        self.peer = peer
        self.principal: Principal | None = None
        """The sender of its requests; None until that is known (network/gates.py)."""
        self.permitted: Permitted | None = None
        """Permissions that are already known, if there is an authorizer."""
        self.client = ConnectedClient()
        self.client_id: str | None = None
        self.last_active = time.perf_counter()
        self.closing = False
        self.is_follower = False
        """Whether its client is a broker that fetches as a follower."""
        self.known: dict[int, KnownRequest] = {}
        """Requests that its client has sent before and sends again, by API key (network/recognition.py)."""
        self._own_buffer: ReceiveBuffer | None = None
        self._slots: deque[Slot] = deque()
        self._large_under_way = 0
        self._paused = False
        self._held = False
        self._throttled: asyncio.TimerHandle | None = None
        self._ending = False

    # -- callbacks of asyncio ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from asyncio's
        self._outgoing = outgoing.Outgoing(
            self.transport,
            None if self.is_encrypted else self._socket,
            read_in_thread=self.owner.run_blocking,
            drained=self._drained,
        )
        self._outgoing.start(is_encrypted=self.is_encrypted)
        self.owner.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self._own_buffer = None
        self._end_throttling()
        if self.authenticator is not None:
            self.authenticator.connection_lost()
        self.client.disconnected()
        self._outgoing.drop()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            slot.lost()
        self.owner.closed(self)

    def eof_received(self) -> bool:
        """Close the connection after the responses of requests under way: the client sends no more, but may still be
        reading. TLS has no half-closed state, so the connection closes at once.
        """
        self.closing = True
        return not self.is_encrypted and bool(self._slots or self._outgoing.queue)

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        own = self._own_buffer
        return self.owner.shared_view if own is None else own.room()

    def buffer_updated(self, nbytes: int) -> None:
        started = self.last_active = time.perf_counter()
        own = self._own_buffer
        if own is None:
            shared = self.owner.shared_buffer
            rest = self._take_requests(shared, 0, nbytes, started)
            if rest < nbytes and not self.is_closing:
                self._own_buffer = ReceiveBuffer(shared, rest, nbytes)
        else:
            own.end += nbytes
            self._take_from(own, started)
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

    def _take_from(self, own: ReceiveBuffer, started: float) -> None:
        own.handled_up_to(self._take_requests(own.data, own.start, own.end, started))
        if own.is_empty and len(own.data) < SHARED_BUFFER_BYTES:
            self._own_buffer = None  # the shared buffer takes more at once

    def _take_requests(self, buffer: bytearray, position: int, end: int, started: float) -> int:
        """Handle the complete requests in buffer[position:end]. Returns where the rest starts. `started`: now."""
        owner = self.owner
        handle = (self.authenticator or owner.requests).handle
        out: list[bytes | bytearray | memoryview | FileSlice] = []
        received = self.last_active
        first, gives_way_at = position, started + owner.turn_s
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
                size: int = FRAME_SIZE.unpack_from(buffer, position)[0]
                if size < 0 or size > self.max_request_bytes:
                    raise MalformedBytes(self._size_refusal(size))
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
                        # Responses that are ready have to be written before the slot's response can be.
                        self._write(out)
                        out = []
                elif self._slots:
                    self._queue_ready(response)
                else:
                    out.extend(response)
                    if len(out) > 64 or len(response) > 1 or len(out[-1]) > 64 * 1024:
                        # Enough for one write; large records have a buffer of their own. Write now, to notice a client
                        # that does not read before more responses are created for it.
                        self._write(out)
                        out = []
        except MalformedBytes as problem:
            if out:
                self._write(out)
            owner.malformed_requests.value += 1
            self.refuse(str(problem))
            return end
        except Rejected as rejection:
            if out:
                self._write(out)
            self.refuse(str(rejection))
            return end
        except Exception as problem:
            owner.request_failed(self, problem)
            return end
        if out:
            self._write(out)
        return position

    def release_idle_memory(self) -> None:
        """Release the connection's own buffer if nothing is partially received. Called periodically."""
        if self._own_buffer is not None and self._own_buffer.is_empty:
            self._own_buffer = None

    def refuse(self, reason: str) -> None:
        log.warning(
            "closed a connection", reason=reason, peer=self.peer, client=self.client_in_log, listener=self.owner.name
        )
        self.close()

    def _size_refusal(self, size: int) -> str:
        limit = self.max_request_bytes
        setting = (
            "socket.request.max.bytes" if limit == self.owner.max_request_bytes else "sasl.server.max.receive.size"
        )
        return f"a request of {size} bytes is announced; {setting} is {limit}"

    @property
    def client_in_log(self) -> str | None:
        """The start of the client id: an untrusted client may send one of 32 KiB."""
        return self.client_id if self.client_id is None else self.client_id[:CLIENT_ID_IN_LOG]

    @property
    def must_authenticate(self) -> bool:
        return self.authenticator is not None

    @property
    def is_closing(self) -> bool:
        """Whether responses are no longer accepted."""
        return self._ending or self.transport.is_closing()

    def close(self) -> None:
        """Close the connection when it has sent what is queued."""
        self.closing = True
        if self._outgoing.queue:
            self._ending = True
            self._pause()
        else:
            self.transport.close()

    # -- responding --------------------------------------------------------------------------------------------------

    @property
    def is_nearby(self) -> bool:
        """Whether the shortest recent round trip to the client took less than NEARBY_US."""
        if self._socket is None:
            return False
        round_trip_us = min_round_trip_us(self._socket)
        return round_trip_us is not None and round_trip_us < NEARBY_US

    def take_slot(self, *, large: bool = False) -> Slot:
        """Queue a new slot. `large`: the response may take megabytes, so only a few of them are under way at a time."""
        slot = Slot(self, large=large)
        self.enqueue(slot)
        return slot

    def enqueue(self, slot: Slot) -> None:
        """Send the slot's response after those of all earlier requests."""
        self._slots.append(slot)
        self._large_under_way += slot.large

    @property
    def requests_under_way(self) -> int:
        return len(self._slots)

    @property
    def responses_waiting(self) -> int:
        """The number of responses that are ready and wait for an earlier one."""
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
        """Send all responses whose turn it is with one write."""
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
            # Not immediately: asyncio's transport may be the caller, and would report the lost connection twice.
            asyncio.get_running_loop().call_soon(self.transport.close)
        else:
            self.try_resume()

    # -- back-pressure -----------------------------------------------------------------------------------------------

    def hold(self, frame: memoryview) -> memoryview:
        """Take no further request until `resume`. Returns the frame of this one, which stays unchanged until then."""
        self._held = True
        if not self._paused:  # also while it closes, since requests may be left in the buffer
            self._paused = True
            self.transport.pause_reading()
        # Nothing is read into this connection's own buffer during that time.
        return memoryview(bytearray(frame)) if frame.obj is self.owner.shared_buffer else frame

    def resume(self) -> None:
        self._held = False
        self.try_resume()

    def throttle(self, throttle_time_ms: int) -> None:
        """Take no further request for this time (KIP-219), so that quotas also apply to clients that ignore them."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + throttle_time_ms / 1000
        if self._throttled is not None:
            if self._throttled.when() >= ends:
                return
            self._throttled.cancel()
        self._pause()
        self._throttled = loop.call_at(ends, self._throttled_long_enough)

    def _throttled_long_enough(self) -> None:
        self._end_throttling()
        self.try_resume()

    def _end_throttling(self) -> None:
        if self._throttled is not None:
            self._throttled.cancel()
            self._throttled = None

    def _pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def try_resume(self) -> None:
        """Handle the requests already received and continue to read, if nothing holds this connection back any more."""
        if (
            not self._paused
            or self._held
            or self._throttled is not None
            or self._outgoing.busy
            or self.is_closing
            or len(self._slots) >= MAX_REQUESTS_UNDER_WAY // 2
            or self._large_under_way >= MAX_LARGE_UNDER_WAY
            or self.owner.overloaded
        ):
            return
        self._paused = False
        if self._own_buffer is not None:
            self._take_from(self._own_buffer, time.perf_counter())
        if not self._paused and not self.is_closing:
            self.transport.resume_reading()
