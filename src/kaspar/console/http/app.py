"""The console as an ASGI application: its resources, and the files of the page."""

from collections.abc import Iterable
from functools import partial

from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from kaspar.console.context import ConsoleContext
from kaspar.console.http.assets import STATIC, Assets
from kaspar.console.http.endpoint import Endpoint
from kaspar.console.http.errors import CallFailed
from kaspar.web.asgi import App, Receive, Scope, Send


class _Rest(Convertor[str]):
    """The rest of a path: a name with any characters. Starlette's `path` ends at a line break, and would read
    `billing%0A` as `billing`."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("rest", _Rest())


def make_app(context: ConsoleContext, endpoints: Iterable[Endpoint], assets: Assets) -> App:
    async def first(request: Request) -> Response:
        return assets.first.response(request.scope)

    async def static(request: Request) -> Response:
        return assets.find(request.scope["path"]).response(request.scope)

    routes = [Route("/", first), Route(f"{STATIC}/{{path:path}}", static)]
    routes += [Route(each.path, partial(_respond, each, context), methods=[each.method]) for each in endpoints]
    return _Application(Router(routes, redirect_slashes=False))


async def _respond(endpoint: Endpoint, context: ConsoleContext, request: Request) -> Response:
    return await endpoint.respond(context, request)


class _Application:
    """Routes a request to its endpoint. Bugs of endpoints pass through it: the web server reports their exceptions."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # makes the router raise HTTPException if it finds no route
        try:
            await self._router(scope, receive, send)
        except CallFailed as failure:
            await failure.response()(scope, receive, send)
        except HTTPException as problem:
            missing = problem.status_code == 404
            sentence = f"Not found: {scope['path']}." if missing else str(problem.detail)
            response = CallFailed(problem.status_code, sentence).response()
            response.headers.update(problem.headers or {})
            await response(scope, receive, send)
