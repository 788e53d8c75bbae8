"""The routes of version 2, and their OpenAPI description."""

from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaspar.rest.context import RestContext
from kaspar.rest.http import JSON, Handler, json_response, with_errors
from kaspar.rest.v2.content_types import KAFKA_V2_JSON, error_type, response_type
from kaspar.rest.v2.endpoints import ENDPOINTS, Handlers
from kaspar.web.openapi import openapi_json


def v2_routes(context: RestContext) -> list[Route]:
    on = Handlers(context)
    by_path: dict[str, dict[str, Handler]] = {"/": {"GET": _root}, "/openapi.json": {"GET": _openapi}}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint.handler(on)
    return [
        Route(path, with_errors(_by_method(handlers), _error_type), methods=list(handlers))
        for path, handlers in by_path.items()
    ]


def _by_method(handlers: dict[str, Handler]) -> Handler:
    async def handle(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return handle


def _error_type(request: Request) -> str:
    return error_type(request.headers.get("accept"))


async def _root(request: Request) -> Response:
    return json_response({}, media_type=response_type(request.headers.get("accept")))


async def _openapi(request: Request) -> Response:
    return Response(v2_openapi(), media_type=JSON)


@cache
def v2_openapi() -> bytes:
    operations = (each.operation for each in ENDPOINTS)
    return openapi_json("Kaspar REST proxy, version 2", operations, content_type=KAFKA_V2_JSON)
