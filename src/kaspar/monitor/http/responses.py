"""Responses in Burrow's form: `error`, `message`, the content, and the URL and host of the request."""

import socket
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kaspar.web.errors import ErrorBody

JSON: Final = "application/json"
encode: Final = msgspec.json.Encoder().encode
_HOST: Final = socket.gethostname()


def burrow_response(request: Request, message: str, status: int = 200, /, **content: Any) -> Response:
    body = {"error": False, "message": message, **content, "request": _request(request)}
    return Response(encode(body), status, media_type=JSON)


def burrow_refusal(request: Request, status: int, message: str) -> Response:
    body = {"error": True, "message": message, "request": _request(request)}
    return Response(encode(body), status, media_type=JSON)


def burrow_error(status: int, message: str) -> ErrorBody:
    """The response to errors that occur outside of the application."""
    return ErrorBody(JSON, encode({"error": True, "message": message, "result": {}}))


def _request(request: Request) -> dict[str, str]:
    return {"url": request.url.path, "host": _HOST}
