"""The asyncio shell of a connection: pipelines the requests of many tasks on one socket, without its own task.

    async with await AsyncConnection.connect("localhost", 9092) as connection:
        response = await connection.request(MetadataRequest(topics=None))

Rules:
- Requests are sent in the order of the calls. While `max_in_flight` of them have no response, or the peer does not read
  what was sent, further requests wait in the caller's task.
- Cancelling one caller does not affect others. If its request was sent, the response is dropped when it arrives.
- A response that does not arrive in time closes the connection, as in Kafka's NetworkClient, because later responses
  would not arrive either. So requests that a broker may hold for long (Fetch with a long max wait) need their own
  connection.
- If the log-in has to wait for other machines (a KDC), it runs in a thread.
- If the broker limits the lifetime of a session (KIP-368), the client logs in again in time: new requests wait until
  those in flight have their responses and the log-in is complete.
- However the connection ends, every caller gets an exception with the reason: an OSError, or MalformedBytes if the
  peer sent anything that is not a response. A closed connection stays closed.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.client.core import (
    API_VERSIONS_REQUEST,
    CONNECT_TIMEOUT_S,
    MAX_FRAME_BYTES,
    REQUEST_TIMEOUT_S,
    ClientCore,
    EncodedRequest,
)
from kaspar.client.log_in_thread import LogInThread
from kaspar.protocol.schema import Message

if TYPE_CHECKING:  # PLAINTEXT connections do not need these modules
    import ssl

    from kaspar.client.authentication import LogIn, LogInRequest
    from kaspar.security.client import ClientSecurity

MAX_IN_FLIGHT: Final = 64
_LOG_IN_THREAD: Final = LogInThread()


@dataclass(slots=True, eq=False)
class _Request:
    encoded: EncodedRequest
    timeout_s: float
    has_response: bool
    response: asyncio.Future[Message | None]
    timer: asyncio.TimerHandle


class AsyncConnection(asyncio.BufferedProtocol):
    """A connection, opened by `connect`. It belongs to the event loop in which it was created."""

    def __init__(self, host: str, port: int, core: ClientCore, *, timeout_s: float, max_in_flight: int) -> None:
        self.peer = f"{host}:{port}"
        self._host = host
        self.core = core
        self.timeout_s = timeout_s
        self.max_in_flight = max_in_flight
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._transport_closed: asyncio.Future[None] = self._loop.create_future()
        self._failure: tuple[type[Exception], str] | None = None
        self._waiting: deque[_Request] = deque()
        self._in_flight: deque[_Request] = deque()
        self._is_paused = False
        self._logging_in: asyncio.Task[None] | None = None
        self._is_log_in_due = False
        self._security: ClientSecurity | None = None
        self._log_in_timer: asyncio.TimerHandle | None = None

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        *,
        client_id: str = "kaspar",
        timeout_s: float = REQUEST_TIMEOUT_S,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        records_in_place: bool = False,
        max_in_flight: int = MAX_IN_FLIGHT,
        negotiate: bool = True,
        security: "ClientSecurity | None" = None,
    ) -> Self:
        """Open a connection. Raises OSError if nothing listens there, TimeoutError if connecting takes too long,
        HandshakeFailed or Refused if the peer refuses the client. With `negotiate=False` the caller chooses all
        versions. Without `security` the connection is PLAINTEXT."""
        core = ClientCore(client_id=client_id, max_frame_bytes=max_frame_bytes, records_in_place=records_in_place)
        connection = cls(host, port, core, timeout_s=timeout_s, max_in_flight=max_in_flight)
        connect_timeout_s = min(timeout_s, CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(connect_timeout_s):
                if security is None or security.tls is None:
                    await connection._loop.create_connection(lambda: connection, host, port)
                else:
                    await connection._connect_encrypted(host, port, security.tls)
        except TimeoutError:
            raise TimeoutError(f"no connection to {connection.peer} within {connect_timeout_s:g} s") from None
        try:
            if negotiate:
                while not core.learn_versions(await connection.request(API_VERSIONS_REQUEST)):
                    pass
            if security is not None:
                await connection._log_in(security)
        except BaseException:
            connection.abort()
            raise
        return connection

    # --- logging in ---------------------------------------------------------------------------------------------------

    async def _connect_encrypted(self, host: str, port: int, context: "ssl.SSLContext") -> None:
        import ssl

        from kaspar.security.client import handshake_failed

        try:
            await self._loop.create_connection(lambda: self, host, port, ssl=context, server_hostname=host)
        except ssl.SSLError as problem:
            raise handshake_failed(self.peer, problem) from None

    async def _log_in(self, security: "ClientSecurity") -> None:
        from kaspar.client.authentication import log_in, log_in_again_after_s

        steps = log_in(self.core, security, self._host)
        received: Message | None = None
        while not isinstance(step := await self._log_in_step(security, steps, received), int):
            self.check_open()  # the connection may have been lost while the log-in waited in its thread
            response = self._new_request(step.message, step.version, None, has_response=True)
            self._send(self._waiting.pop())
            received = await response.response
            assert received is not None
        lifetime_ms = step
        if lifetime_ms and not self.is_closed:
            self._log_in_timer = self._loop.call_later(log_in_again_after_s(lifetime_ms), self._log_in_is_due, security)

    async def _log_in_step(
        self, security: "ClientSecurity", steps: "LogIn", received: Message | None
    ) -> "LogInRequest | int":
        """The next request, or the lifetime of the session in milliseconds."""
        if not security.log_in_blocks:
            return _next_step(steps, received)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await asyncio.wrap_future(_LOG_IN_THREAD.submit(_next_step, steps, received))
        except TimeoutError:
            raise TimeoutError(
                f"no log-in at {self.peer} within {self.timeout_s:g} s: the KDC does not respond"
            ) from None

    def _log_in_is_due(self, security: "ClientSecurity") -> None:
        self._security, self._is_log_in_due = security, True
        self._maybe_log_in_again()

    def _maybe_log_in_again(self) -> None:
        if self._in_flight or self._logging_in is not None or self.is_closed or self._security is None:
            return
        if self._is_log_in_due:
            self._logging_in = self._loop.create_task(self._log_in_again(self._security))

    async def _log_in_again(self, security: "ClientSecurity") -> None:
        try:
            await self._log_in(security)
        except (OSError, KasparError) as problem:
            self._end(ConnectionAbortedError, f"the connection to {self.peer} was closed: {problem}")
        finally:
            self._logging_in, self._is_log_in_due = None, False
        self._send_waiting()

    # --- requests -----------------------------------------------------------------------------------------------------

    async def request(self, message: Message, version: int | None = None, *, timeout_s: float | None = None) -> Message:
        """Send a request and wait for its response; by default in the newest version that both sides know.

        `timeout_s` limits the wait for the response, and separately the wait until the request can be sent.
        """
        response = await self._enqueue(message, version, timeout_s)
        assert response is not None
        return response

    async def request_all(self, messages: Sequence[Message], version: int | None = None) -> list[Message]:
        """Send all of these requests without waiting in between, and wait for their responses."""
        responses = await asyncio.gather(*[self._enqueue(message, version) for message in messages])
        return [response for response in responses if response is not None]

    async def send_only(self, message: Message, version: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0."""
        await self._enqueue(message, version, has_response=False)

    def _enqueue(
        self, message: Message, version: int | None, timeout_s: float | None = None, *, has_response: bool = True
    ) -> asyncio.Future[Message | None]:
        self.check_open()
        request = self._new_request(message, version, timeout_s, has_response=has_response)
        self._send_waiting()
        return request.response

    def _new_request(
        self, message: Message, version: int | None, timeout_s: float | None, *, has_response: bool
    ) -> _Request:
        """Create a request at the end of the waiting ones."""
        encoded = self.core.encode(message, version)
        if timeout_s is None:
            timeout_s = self.timeout_s
        response: asyncio.Future[Message | None] = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, self._not_sent_in_time, response)
        request = _Request(encoded, timeout_s, has_response, response, timer)
        self._waiting.append(request)
        return request

    def _send_waiting(self) -> None:
        while (
            self._waiting
            and len(self._in_flight) < self.max_in_flight
            and not self._is_paused
            and not self._is_log_in_due
            and self._transport is not None
        ):
            self._send(self._waiting.popleft())

    def _send(self, request: _Request) -> None:
        request.timer.cancel()
        if request.response.done() or self._transport is None:  # the caller was cancelled, or has waited too long
            return
        if request.has_response:
            request.timer = self._loop.call_later(request.timeout_s, self._no_response_in_time, request)
            self._in_flight.append(request)
        else:
            request.response.set_result(None)
        self._transport.write(self.core.send_encoded(request.encoded, has_response=request.has_response))

    def _not_sent_in_time(self, response: asyncio.Future[Message | None]) -> None:
        if not response.done():
            before = len(self._in_flight)
            response.set_exception(
                TimeoutError(f"not sent to {self.peer} in time: {before} earlier requests have no response yet")
            )

    def _no_response_in_time(self, request: _Request) -> None:
        text = f"no response from {self.peer} within {request.timeout_s:g} s"
        if not request.response.done():
            request.response.set_exception(TimeoutError(text))
        self._end(ConnectionAbortedError, f"the connection was closed: {text}")

    # --- the end ------------------------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        return self._failure is not None

    def check_open(self) -> None:
        """Raise the error that ended the connection, if it has ended."""
        if self._failure is not None:
            kind, text = self._failure
            raise kind(text)

    def abort(self) -> None:
        """Close the connection at once, without waiting for the socket to be closed."""
        self._end(ConnectionAbortedError, f"the connection to {self.peer} was closed by this side")

    async def close(self) -> None:
        """Close the connection. Callers that wait for a response get ConnectionAbortedError."""
        self.abort()
        if self._transport is not None:
            await asyncio.shield(self._transport_closed)

    def _end(self, kind: type[Exception], text: str) -> None:
        """End the connection. Every caller gets its own exception: a shared one would collect the frames of all tasks
        that raise it.
        """
        if self._failure is not None:
            return
        self._failure = kind, text
        if self._log_in_timer is not None:
            self._log_in_timer.cancel()
        for request in (*self._in_flight, *self._waiting):
            request.timer.cancel()
            if not request.response.done():
                request.response.set_exception(kind(text))
        self._in_flight.clear()
        self._waiting.clear()
        if self._transport is not None:
            self._transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # --- what asyncio calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass of asyncio's

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f"was lost: {exc}" if exc is not None else "was closed by the peer"
        self._end(ConnectionResetError, f"the connection to {self.peer} {reason}")
        if not self._transport_closed.done():
            self._transport_closed.set_result(None)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._send_waiting()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.core.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._failure is not None:
            return
        try:
            response = self.core.buffer_updated(nbytes)
        except MalformedBytes as error:
            self._end(MalformedBytes, f"{self.peer} sent bytes that are not a response: {error}")
            return
        if response is not None:
            request = self._in_flight.popleft()
            request.timer.cancel()
            if not request.response.done():
                request.response.set_result(response.message)
            if self._is_log_in_due:
                self._maybe_log_in_again()
            else:
                self._send_waiting()


def _next_step(steps: "LogIn", received: Message | None) -> "LogInRequest | int":
    """Run one step of a log-in. Its end is returned, because StopIteration cannot be passed between threads."""
    try:
        return next(steps) if received is None else steps.send(received)
    except StopIteration as done:
        lifetime_ms: int = done.value
        return lifetime_ms
