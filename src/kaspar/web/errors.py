"""How a service writes errors that arise before or outside of its application: malformed HTTP, a failed log-in, a
request beyond a limit, a bug.

Each API has a form of its own, so a service hands the server a function, its `ErrorForm`.
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
"""The body for an HTTP status and a sentence."""


def plain_error(status: int, message: str) -> ErrorBody:
    """For pages that people and probes read."""
    return ErrorBody("text/plain; charset=utf-8", f"{message}\n".encode())


def json_error_form(content_type: str = "application/json") -> ErrorForm:
    """Confluent's form: the HTTP status as `error_code`, and a message."""

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
    """A whole response."""
    body = form(status, message)
    own = [(b"content-type", body.content_type.encode()), (b"content-length", str(len(body.content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body.content})
