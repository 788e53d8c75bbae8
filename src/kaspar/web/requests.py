"""The checks that every request passes before the application, in this order: the number of requests in progress, the
requested host, the caller's identity, and the limits of its body. Errors in these checks, and bugs of the application,
become responses in the service's own format.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from starlette.exceptions import HTTPException

from kaspar.base.log import get_log
from kaspar.web.asgi import App, Message, Receive, Scope, Send, header
from kaspar.web.authentication import Authenticator
from kaspar.web.connection import PEER
from kaspar.web.errors import ErrorForm, send_error
from kaspar.web.hosts import AllowedHosts
from kaspar.web.identity import ANONYMOUS, CALLER, Caller, Scheme
from kaspar.web.limits import RequestLimits
from kaspar.web.metrics import HttpMetrics
from kaspar.web.streaming import BodyMode

log = get_log(__name__)

WRONG_SECRET_PAUSE_S: Final = 0.3
_RETRY_AFTER: Final = ((b"retry-after", b"1"),)


class BodyRefused(HTTPException):
    """Raised when an application reads a body that is too large or arrives too slowly. It is an HTTPException, so that
    Starlette's error handlers write the response."""


class LogIn:
    """Identifies the caller of a request. Without an authenticator all requests are accepted."""

    def __init__(
        self, authenticator: Authenticator | None = None, *, realm: str = "", skipped_paths: Sequence[str] = ()
    ) -> None:
        self._authenticator = authenticator
        self._scheme = b"" if authenticator is None else authenticator.scheme.value.encode()
        self._skipped = frozenset(path for path in skipped_paths if path and not path.endswith("*"))
        self._skipped_prefixes = tuple(path[:-1] for path in skipped_paths if path.endswith("*"))
        self._realm = (realm or "kaspar").replace("\\", "\\\\").replace('"', '\\"')

    @property
    def challenge(self) -> bytes:
        return f'{self._scheme.decode().capitalize()} realm="{self._realm}"'.encode("latin-1", "replace")

    async def caller(self, scope: Scope) -> Caller | None:
        """The caller, or None if the request must be rejected."""
        if self._authenticator is None or self._is_skipped(scope["path"]):
            peer = scope.get(PEER)
            return ANONYMOUS if peer is None else Caller(peer, Scheme.CERTIFICATE)
        authorization = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(authorization) != 1:  # two would be ambiguous
            return None
        kind, _, given = authorization[0].partition(b" ")
        given = given.strip()
        caller = await self._authenticator.caller(given) if kind.lower() == self._scheme and given else None
        if caller is None:
            await asyncio.sleep(WRONG_SECRET_PAUSE_S)
        return caller

    def _is_skipped(self, path: str) -> bool:
        return path in self._skipped or bool(self._skipped_prefixes and path.startswith(self._skipped_prefixes))


class Gate:
    """An ASGI application in front of the service's own."""

    def __init__(
        self,
        app: App,
        *,
        log_in: LogIn,
        limits: RequestLimits,
        error_form: ErrorForm,
        logs_requests: bool = False,
        metrics: HttpMetrics | None = None,
        hosts: AllowedHosts | None = None,
    ) -> None:
        """`hosts` is None if requests may use any host name."""
        self._app = app
        self._hosts = hosts
        self._log_in = log_in
        self._limits = limits
        self._error_form = error_form
        self._logs_requests = logs_requests
        self._metrics = metrics
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = _Response(send)
        started_at = time.perf_counter()
        self.under_way += 1
        try:
            await self._pass(scope, receive, response)
        except Exception as problem:
            refused = _refusal_in(problem)
            if refused is not None:
                await self._fail(response, refused.status_code, str(refused.detail))
            else:
                log.exception("a request failed", method=scope["method"], path=scope["path"])
                await self._fail(response, 500, "Internal Server Error")
        finally:
            self.under_way -= 1
            seconds = time.perf_counter() - started_at
            if self._metrics is not None:
                self._metrics.record(scope, response.status, seconds)
            if self._logs_requests:
                _log_request(scope, response.status, seconds)

    async def _pass(self, scope: Scope, receive: Receive, response: "_Response") -> None:
        if self.under_way > self._limits.requests:
            await send_error(response.send, self._error_form, 503, "Too many requests.", _RETRY_AFTER)
            return
        host = header(scope, b"host")
        if self._hosts is not None and host is not None and not self._hosts.allow(host):  # browsers always send it
            shown = host.decode("ascii", "replace")
            sentence = f"This service is not known as {shown!r}. If it should be, add it to kaspar.http.allowed.hosts."
            await send_error(response.send, self._error_form, 421, sentence)
            return
        caller = await self._log_in.caller(scope)
        if caller is None:
            challenge = ((b"www-authenticate", self._log_in.challenge),)
            await send_error(response.send, self._error_form, 401, "Unauthorized", challenge)
            return
        scope[CALLER] = caller
        size = _declared_size(scope)
        if size != 0:
            mode = BodyMode()
            mode.add_to(scope)
            receive = _Body(mode, receive, self._limits, size).receive
        await self._app(scope, receive, response.send)

    async def _fail(self, response: "_Response", status: int, message: str) -> None:
        if response.status is None:
            await send_error(response.send, self._error_form, status, message)
        else:
            response.cut()


def _refusal_in(problem: BaseException | None) -> BodyRefused | None:
    """The BodyRefused behind this exception, if any: Starlette wraps it if the response has begun."""
    while problem is not None and not isinstance(problem, BodyRefused):
        problem = problem.__cause__
    return problem


class _Response:
    """Forwards a response, and records its status when it has begun."""

    __slots__ = ("_send", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if self.status is None and message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    def cut(self) -> None:
        """Abort the response, so that the client does not take it for complete: uvicorn closes the connection if the
        application raises.
        """
        raise ConnectionAbortedError("the response cannot be completed")


class _Body:
    """A request body whose size and duration are limited."""

    def __init__(self, mode: BodyMode, receive: Receive, limits: RequestLimits, declared: int | None) -> None:
        self._mode = mode
        self._receive = receive
        self._limits = limits
        self._declared = declared or 0
        self._received = 0
        self._until: float | None = None
        self._is_complete = False

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._receive()  # waits for the end of the connection
        is_streaming = self._mode.is_streaming
        if not is_streaming and self._declared > self._limits.body_bytes:
            raise self._too_large()
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = now + self._limits.body_within_s
        until = now + self._limits.silent_within_s if is_streaming else self._until
        try:
            async with asyncio.timeout_at(until):
                message = await self._receive()
        except TimeoutError:
            raise BodyRefused(408, "The body of the request took too long.") from None
        self._received += len(message.get("body", b""))
        if not is_streaming and self._received > self._limits.body_bytes:
            raise self._too_large()
        self._is_complete = not message.get("more_body", False)
        return message

    def _too_large(self) -> BodyRefused:
        return BodyRefused(413, f"The body of the request is larger than {self._limits.body_bytes} bytes.")


def _declared_size(scope: Scope) -> int | None:
    """0 if there is no body, None if its size is unknown (chunked)."""
    size: int | None = 0
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value)  # the parser has checked it
        if name == b"transfer-encoding":
            size = None
    return size


def _log_request(scope: Scope, status: int | None, seconds: float) -> None:
    client = scope.get("client")
    caller: Caller = scope.get(CALLER, ANONYMOUS)
    log.info(
        "request",
        client=client[0] if client else None,
        caller=caller.name,
        method=scope["method"],
        path=scope["path"],
        status=status,
        ms=round(seconds * 1000, 1),
    )
