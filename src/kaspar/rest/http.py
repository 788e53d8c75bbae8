"""Requests and responses of both versions of the API: bodies, and errors as JSON."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kaspar.base.errors import Refused
from kaspar.rest.errors import BAD_REQUEST, TOO_MANY_REQUESTS, UNPROCESSABLE, ErrorKind, RestError, from_refusal
from kaspar.rest.settings import RestSettings

JSON: Final = "application/json"
_SENT_AT_ONCE: Final = 64 * 1024
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(?P<name>.*?)`")

Handler = Callable[[Request], Awaitable[Response]]
_Body = TypeVar("_Body")

encode: Final = msgspec.json.Encoder().encode


def json_response(content: Any, *, media_type: str = JSON, status: int = 200) -> Response:
    return Response(encode(content), status, media_type=media_type)


class JsonParts(Response):
    """JSON that is sent in parts, so that a large response is never in memory as a whole, nor copied at once."""

    def __init__(self, parts: Sequence[bytes], *, media_type: str = JSON, status: int = 200) -> None:
        self._size = sum(map(len, parts))
        self._parts = parts
        if self._size <= _SENT_AT_ONCE:
            super().__init__(b"".join(parts), status, media_type=media_type)
        else:
            super().__init__(None, status, {"content-length": str(self._size)}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._size <= _SENT_AT_ONCE:
            await super().__call__(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        left = self._size
        for part in self._parts:
            left -= len(part)
            await send({"type": "http.response.body", "body": part, "more_body": left > 0})


def no_content() -> Response:
    return Response(status_code=204)


def error_response(kind: ErrorKind, message: str, media_type: str = JSON) -> Response:
    body = {"error_code": kind.code, "message": message or kind.text}
    return json_response(body, media_type=media_type, status=kind.status)


def with_errors(handler: Handler, media_type: Callable[[Request], str] = lambda request: JSON) -> Handler:
    """Wrap the handler: errors become responses of this media type. Other exceptions are bugs, which the web server
    reports."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RestError as error:
            return error_response(error.kind, error.message, media_type(request))
        except Refused as refused:
            refusal = from_refusal(refused)
            return error_response(refusal.kind, refusal.message, media_type(request))
        except ClientDisconnect:
            return Response(status_code=400)  # the client is gone
        except HTTPException as problem:  # the body was too large, or came too slowly
            return error_response(ErrorKind(problem.status_code, problem.status_code), problem.detail)

    return handle


def decode_body(decoder: msgspec.json.Decoder[_Body], body: bytes) -> _Body:
    """Raises RestError: 400 for invalid JSON or wrong types, 422 for unknown fields."""
    try:
        str(body, "utf-8")  # the decoder does not check the UTF-8 of parts that it does not parse
        return decoder.decode(body)
    except UnicodeDecodeError:
        raise RestError(BAD_REQUEST, "The request body is not valid UTF-8.") from None
    except msgspec.ValidationError as problem:
        if match := _UNKNOWN_FIELD.match(str(problem)):
            raise RestError(UNPROCESSABLE, f"Unrecognized field: {match['name']}") from None
        raise RestError(BAD_REQUEST, str(problem)) from None
    except (msgspec.DecodeError, RecursionError) as problem:
        raise RestError(BAD_REQUEST, str(problem)) from None


class BodyBudget:
    """Limits the total memory of the bodies of produce requests."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken = 0

    @asynccontextmanager
    async def of(self, request: Request) -> AsyncIterator[bytes]:
        """The body, which counts towards the limit until the context exits. Raises RestError (429)."""
        taken = 0
        parts = []
        try:
            if (declared := request.headers.get("content-length")) is not None:
                taken = self.take(int(declared))
            async for part in request.stream():
                if declared is None:
                    taken += self.take(len(part))
                parts.append(part)
            yield b"".join(parts)
        finally:
            self.release(taken)

    def take(self, size: int) -> int:
        """Returns the size. Raises RestError (429)."""
        if self._taken + size > self._max_bytes:
            raise RestError(TOO_MANY_REQUESTS, "The request bodies take too much memory.")
        self._taken += size
        return size

    def release(self, size: int) -> None:
        self._taken -= size


class Links:
    """Absolute URLs in responses, with an address at which clients can reach the proxy."""

    def __init__(self, settings: RestSettings) -> None:
        self._host_name = settings.host_name
        self._advertised: dict[str, str] = {}
        for listener in settings.advertised_listeners:
            self._advertised.setdefault(urlsplit(listener).scheme, listener.rstrip("/"))

    def to(self, request: Request, path: str) -> str:
        """`path` must be quoted and begin with a slash."""
        scheme = request.url.scheme
        if scheme in self._advertised:
            return self._advertised[scheme] + path
        where = request.url.netloc
        if self._host_name:
            port = request.url.port
            where = self._host_name if port is None else f"{self._host_name}:{port}"
        return f"{scheme}://{where}{path}"
