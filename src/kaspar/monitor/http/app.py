"""The application: routes requests to endpoints."""

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Router

from kaspar.monitor.core import Monitor
from kaspar.monitor.http.burrow import burrow_routes
from kaspar.monitor.http.burrow_config import burrow_config_routes
from kaspar.monitor.http.metrics import metrics_routes
from kaspar.monitor.http.own import own_routes
from kaspar.monitor.http.responses import JSON, burrow_error
from kaspar.web.asgi import App, Receive, Scope, Send


def make_app(monitor: Monitor) -> App:
    routes = [
        *burrow_routes(monitor),
        *burrow_config_routes(monitor),
        *own_routes(monitor),
        *metrics_routes(monitor),
    ]
    return _Application(Router(routes, redirect_slashes=False))


class _Application:
    """Exceptions of endpoints are not caught: the web server reports them as bugs."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        # With "app" in the scope, the router raises HTTPException if no route matches.
        scope.update(path=path.rstrip("/") or "/", app=self)
        try:
            await self._router(scope, receive, send)
        except HTTPException as problem:
            message = "invalid request type" if problem.status_code == 404 else problem.detail
            body = burrow_error(problem.status_code, message)
            response = Response(body.content, problem.status_code, problem.headers, JSON)
            await response(scope, receive, send)
