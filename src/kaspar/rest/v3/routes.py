"""The routes of version 3, and their OpenAPI description."""

from functools import cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaspar.rest.context import RestContext
from kaspar.rest.http import JSON, Handler, with_errors
from kaspar.rest.v3 import acls, clusters, configs, groups, lags, many_configs, partitions, reassignments, topics
from kaspar.rest.v3.endpoint import Endpoint
from kaspar.rest.v3.producing import batch, stream
from kaspar.web.openapi import openapi_json

ALL_ENDPOINTS: Final = (
    *many_configs.ENDPOINTS,
    *reassignments.ENDPOINTS,
    *clusters.ENDPOINTS,
    *configs.ENDPOINTS,
    *topics.ENDPOINTS,
    *partitions.ENDPOINTS,
    *groups.ENDPOINTS,
    *lags.ENDPOINTS,
    *acls.ENDPOINTS,
    *stream.ENDPOINTS,
    *batch.ENDPOINTS,
)
"""The first match wins, so paths with `-` for all resources precede those with a name in its place."""


def v3_routes(context: RestContext) -> list[Route]:
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ALL_ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    routes = [
        Route(path, with_errors(_handler(context, endpoints)), methods=list(endpoints))
        for path, endpoints in by_path.items()
    ]
    return [Route("/v3/openapi.json", _openapi, methods=["GET"]), *routes]


def _handler(context: RestContext, endpoints: dict[str, Endpoint]) -> Handler:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method].respond(context, request)

    return handle


async def _openapi(request: Request) -> Response:
    return Response(v3_openapi(), media_type=JSON)


@cache
def v3_openapi() -> bytes:
    operations = (each.operation for each in ALL_ENDPOINTS)
    return openapi_json("Kaspar REST proxy, version 3", operations, content_type=JSON)
