"""The application: the steps that every request passes, in order.

Route, content types, body, permission, handler. A write that this instance cannot decide is forwarded to the leader.
Errors become responses here.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from http import HTTPStatus
from itertools import chain
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from kaspar.base.log import get_log
from kaspar.registry.api.bodies import ErrorResponse
from kaspar.registry.api.endpoint import Call, Endpoint, NoContent, Raw, WriteTexts
from kaspar.registry.api.media_types import V1_JSON, check_request_type, response_type
from kaspar.registry.api.openapi import registry_openapi
from kaspar.registry.api.paths import segments_of, target_of
from kaspar.registry.api.routing import ALL_ENDPOINTS, Router, path_parameters
from kaspar.registry.authorization import Authorizer
from kaspar.registry.errors import (
    MethodNotAllowed,
    RegistryError,
    forwarding_failed,
    http_error,
    schema_too_large,
    store_failed,
    timed_out,
    unknown_leader,
)
from kaspar.registry.interfaces import (
    FORWARD_HEADER,
    ForwardedRequest,
    Forwarder,
    ForwardingFailed,
    NotLeader,
    RecordTooLarge,
    StoreFailed,
    StoreTimeout,
)
from kaspar.registry.service import RegistryService
from kaspar.web.identity import caller_of
from kaspar.web.metrics import name_route

log = get_log(__name__)

_ENCODER: Final = msgspec.json.Encoder()
_PORTION_BYTES: Final = 64 * 1024
_OPENAPI: Final = ("openapi.json",)


def make_app(
    service: RegistryService, *, forwarder: Forwarder | None = None, authorizer: Authorizer | None = None
) -> Starlette:
    """Without a forwarder, writes are rejected on an instance that is not the leader. Without an authorizer, all
    requests are allowed."""
    app = Starlette()
    # Starlette's own routes match decoded paths, in which a slash within a subject looks like a separator.
    app.router.redirect_slashes = False
    app.router.default = RegistryApp(service, forwarder, authorizer)
    return app


class RegistryApp:
    def __init__(self, service: RegistryService, forwarder: Forwarder | None, authorizer: Authorizer | None) -> None:
        self._service = service
        self._forwarder = forwarder
        self._authorizer = authorizer
        self._router = Router(ALL_ENDPOINTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        content_type = V1_JSON
        try:
            if segments_of(scope) == _OPENAPI:
                response = Response(registry_openapi(ALL_ENDPOINTS), media_type="application/json")
            else:
                content_type = response_type(request.headers.get("accept"))
                response = await self._response(request, content_type)
        except RegistryError as problem:
            response = _error_response(problem, content_type)
        except ClientDisconnect:
            return
        except HTTPException as problem:  # a body that is too large, or arrives too slowly (kaspar.web.requests)
            response = _error_response(RegistryError(problem.status_code, str(problem.detail)), content_type)
        except Exception:
            log.exception("a request failed", method=request.method, path=request.url.path)
            response = _error_response(
                RegistryError(HTTPStatus.INTERNAL_SERVER_ERROR.value, "Internal Server Error"), content_type
            )
        if request.method == "HEAD":
            response.body = b""
        await response(scope, receive, send)

    async def _response(self, request: Request, content_type: str) -> Response:
        try:
            target = target_of(segments_of(request.scope), QueryParams(request.scope["query_string"]))
        except ValueError as problem:
            raise http_error(HTTPStatus.BAD_REQUEST, str(problem)) from None
        endpoint = self._router.find(request.method, target.segments)
        name_route(request.scope, "/" + "/".join(endpoint.segments))
        if endpoint.body is not None:
            check_request_type(request.headers.get("content-type"))
        path = path_parameters(endpoint, target.segments)
        body = await self._body(request)
        call = Call(
            service=self._service,
            path=path,
            subject=endpoint.subject_of(path, self._service.state),
            query=target.query,
            body=body,
            user=caller_of(request.scope).name,
            authorizer=self._authorizer,
        )
        self._check_access(request, endpoint, call)
        if endpoint.writes is None:
            return _success(await endpoint.handler(call), content_type)
        return await self._write(request, endpoint, endpoint.writes, call, content_type)

    async def _body(self, request: Request) -> bytes:
        limit = self._service.options.max_body_bytes
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise http_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return bytes(body)

    def _check_access(self, request: Request, endpoint: Endpoint, call: Call) -> None:
        if self._authorizer is None:
            return
        if caller_of(request.scope).is_anonymous:
            raise http_error(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if not endpoint.check_access(call):
            raise http_error(HTTPStatus.FORBIDDEN, "Forbidden")

    async def _write(
        self, request: Request, endpoint: Endpoint, texts: WriteTexts, call: Call, content_type: str
    ) -> Response:
        try:
            return _success(await endpoint.handler(call), content_type)
        except NotLeader:
            return await self._forward(request, texts, call)
        except StoreTimeout as problem:
            log.warning("a write timed out", path=request.url.path, reason=str(problem))
            raise timed_out(texts.timed_out) from None
        except RecordTooLarge:
            raise schema_too_large() from None
        except StoreFailed as problem:
            log.warning("a write failed", path=request.url.path, reason=str(problem))
            raise store_failed(texts.failed) from None

    async def _forward(self, request: Request, texts: WriteTexts, call: Call) -> Response:
        leader_url = self._service.leadership.leader_url
        is_forwarded = request.headers.get(FORWARD_HEADER, "").lower() == "false"
        if self._forwarder is None or leader_url is None or is_forwarded or self._service.leadership.is_leader:
            # The client retries; by then the follower that forwarded the request to this instance will know the new
            # leader.
            raise unknown_leader(texts.no_leader)
        forwarded = ForwardedRequest(request.method, _raw_target(request), dict(request.headers), call.body)
        try:
            response = await self._forwarder.forward(leader_url, forwarded)
        except ForwardingFailed:  # logged by the forwarder
            raise forwarding_failed(texts.not_forwarded) from None
        try:
            # A client that writes through this instance must read its own write from it.
            await self._service.catch_up()
        except (StoreTimeout, StoreFailed) as problem:
            log.warning("a forwarded write was not replayed here in time", leader=leader_url, reason=str(problem))
        return Response(response.body, response.status, dict(response.headers))


def _raw_target(request: Request) -> str:
    """The path and query exactly as the client sent them."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    path, query = raw.split(b"?", 1)[0].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _success(result: Any, content_type: str) -> Response:
    if isinstance(result, NoContent):
        return Response(status_code=HTTPStatus.NO_CONTENT)
    headers = {"content-type": content_type}
    if isinstance(result, list):
        portions = _portions(result)
        first, second = next(portions), next(portions, None)
        return Response(first, headers=headers) if second is None else _Portions([first, second], portions, headers)
    body = result.text.encode() if isinstance(result, Raw) else _ENCODER.encode(result)
    return Response(body, headers=headers)


def _portions(items: list[Any]) -> Iterator[bytes]:
    """The list as JSON, in portions, because all schemas of a registry take tens of megabytes."""
    portion = bytearray(b"[")
    for index, item in enumerate(items):
        if index:
            portion += b","
        portion += _ENCODER.encode(item)
        if len(portion) >= _PORTION_BYTES and index + 1 < len(items):
            yield bytes(portion)
            portion.clear()
    yield bytes(portion + b"]")


class _Portions(StreamingResponse):
    """Sends portions as the client reads them, and yields to the event loop after each."""

    def __init__(self, begun: Iterable[bytes], rest: Iterable[bytes], headers: dict[str, str]) -> None:
        async def content() -> AsyncIterator[bytes]:
            for portion in chain(begun, rest):
                for start in range(0, len(portion), _PORTION_BYTES):  # a single schema may be large
                    yield portion[start : start + _PORTION_BYTES]
                    await asyncio.sleep(0)

        super().__init__(content(), headers=headers)


def _error_response(problem: RegistryError, content_type: str) -> Response:
    headers = {"content-type": content_type}
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Basic realm="schema-registry", charset="UTF-8"'
    if isinstance(problem, MethodNotAllowed):
        headers["allow"] = ", ".join(problem.allowed)
    return Response(_ENCODER.encode(ErrorResponse(problem.code, problem.message)), problem.status, headers)
