"""Burrow's HTTP API, version 3, for the one cluster that is watched."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kaspar.monitor.core import Monitor


def burrow_routes(monitor: Monitor) -> list[Route]:
    async def healthy(request: Request) -> Response:
        return PlainTextResponse("GOOD")

    return [Route("/burrow/admin", healthy, methods=["GET"])]
