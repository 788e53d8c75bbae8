"""The format of errors that arise before or outside of the application: malformed HTTP, failed authentication, a
request beyond a limit, a bug.

Each API has its own format, so a service provides a function, its `ErrorForm`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias

from kaspar.web.asgi import Send


@dataclass(frozen=True, slots=True)
class ErrorBody:
    content_type: str
    content: bytes


ErrorForm: TypeAlias = Callable[[int, str], ErrorBody]
"""The body for an HTTP status and a message."""


def plain_error(status: int, message: str) -> ErrorBody:
    """For pages that are read by people and probes."""
    return ErrorBody("text/plain; charset=utf-8", f"{message}\n".encode())


def json_error_form(content_type: str = "application/json") -> ErrorForm:
    """Confluent's format: the HTTP status as `error_code`, and a message."""

    def form(status: int, message: str) -> ErrorBody:
        body = {"error_code": status, "message": message}
        return ErrorBody(content_type, json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())

    return form


json_error: Final = json_error_form()


def phrase_of(status: int) -> str:
    return HTTPStatus(status).phrase


async def send_error(
    send: Send, form: ErrorForm, status: int, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send a complete error response."""
    body = form(status, message)
    own = [(b"content-type", body.content_type.encode()), (b"content-length", str(len(body.content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body.content})
