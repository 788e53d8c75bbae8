"""Metrics of a hosted service's requests, for Prometheus: counts by route, method and status, and durations.

The page is at `kaspar.http.metrics.path`, and requires the service's authentication. A route is a declared path such as
`/subjects/{subject}/versions`, so that the number of series does not depend on the requests of clients. Requests that
match no route, and those of routes beyond MAX_ROUTES, are counted under `other`.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kaspar.base.exposition import CONTENT_TYPE, Family, Kind, Sample, labels, render, select, summary_samples
from kaspar.base.metrics import WINDOW_SECONDS, Histogram
from kaspar.web.asgi import App, Receive, Scope, Send

MAX_ROUTES: Final = 500
OTHER: Final = "other"
_ROUTE: Final = "kaspar.route"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class HttpMetrics:
    """The metrics of one service. Owned by the event loop that serves it."""

    def __init__(self, service: str, now: Callable[[], float] = time.monotonic) -> None:
        self.service = service
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By route, method and status. Status 0 means no response, because the client disconnected first."""
        self.times: dict[str, Histogram] = {}
        """Durations in seconds, by route."""
        self.under_way: Callable[[], int] = lambda: 0
        self.connections: Callable[[], int] = lambda: 0
        self._now = now
        self._rotated_at = now()

    def record(self, scope: Scope, status: int | None, seconds: float) -> None:
        self.maybe_rotate()
        route = _route_of(scope) if status != 401 else OTHER  # unauthenticated clients must not fill the table
        if route not in self.times and len(self.times) >= MAX_ROUTES:
            route = OTHER
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        self.requests[route, method, status or 0] += 1
        times = self.times.get(route)
        if times is None:
            times = self.times[route] = Histogram()
        times.record(seconds)

    def maybe_rotate(self) -> None:
        now = self._now()
        if now - self._rotated_at >= WINDOW_SECONDS:
            self._rotated_at = now
            for times in self.times.values():
                times.rotate()


def name_route(scope: Scope, template: str) -> None:
    """For applications that do not use Starlette's routing: set the path template that the request matched."""
    scope[_ROUTE] = template


def _route_of(scope: Scope) -> str:
    named = scope.get(_ROUTE)
    if named is not None:
        return str(named)
    return _template(scope["path"], scope.get("path_params") or {}) if "endpoint" in scope else OTHER


def _template(path: str, parameters: Mapping[str, Any]) -> str:
    """The path with the names of its parameters in place of their values, which are searched from the last to the
    first.
    """
    end = len(path)
    for name, value in reversed(list(parameters.items())):
        at = path.rfind(f"/{value}", 0, end)
        if at >= 0:
            path = f"{path[:at]}/{{{name}}}{path[at + 1 + len(str(value)) :]}"
            end = at
    return path


# -- the page ----------------------------------------------------------------------------------------------------------


def _counted(metrics: HttpMetrics) -> Iterable[Sample]:
    for (route, method, status), count in list(metrics.requests.items()):
        yield labels(service=metrics.service, route=route, method=method, status=status), count


def _timed(metrics: HttpMetrics) -> Iterable[Sample]:
    for route, times in list(metrics.times.items()):
        yield from summary_samples(times.distribution(), labels(service=metrics.service, route=route))


FAMILIES: Final[tuple[Family[HttpMetrics], ...]] = (
    Family(
        "kaspar_http_requests_total",
        Kind.COUNTER,
        "Requests, by route, method and status; status 0: the client disconnected before the response.",
        _counted,
        ("service", "route", "method", "status"),
    ),
    Family(
        "kaspar_http_request_seconds",
        Kind.SUMMARY,
        "Request durations in seconds. Quantiles cover the last one to two minutes.",
        _timed,
        ("service", "route"),
    ),
    Family(
        "kaspar_http_requests_under_way",
        Kind.GAUGE,
        "Requests in progress.",
        lambda metrics: [(labels(service=metrics.service), metrics.under_way())],
        ("service",),
    ),
    Family(
        "kaspar_http_connections",
        Kind.GAUGE,
        "Open connections.",
        lambda metrics: [(labels(service=metrics.service), metrics.connections())],
        ("service",),
    ),
)


class WithMetricsPage:
    """An ASGI application that serves the metrics page, and passes other requests to the service's application."""

    def __init__(self, app: App, path: str, metrics: HttpMetrics) -> None:
        self._app = app
        self._path = path
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        from starlette.datastructures import QueryParams
        from starlette.responses import Response

        name_route(scope, self._path)
        self._metrics.maybe_rotate()
        names = frozenset(QueryParams(scope["query_string"]).getlist("name[]"))
        page = b"".join(render(select(FAMILIES, names), self._metrics))
        await Response(page, headers={"content-type": CONTENT_TYPE})(scope, receive, send)
