"""The broker's HTTP pages for monitoring: /metrics for Prometheus, /healthz and /readyz for supervisors.

`/metrics?name[]=...` returns only the named families, as other exporters do.

The pages are served from a thread with its own event loop, so that health is reported even when the broker's loop is
blocked. That thread also imports the modules that only it needs, which keeps them out of the broker's start. While it
writes the page it releases the interpreter lock every millisecond or two: a scrape must not delay a produce.
"""

import ipaddress
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kaspar.base.exposition import CONTENT_TYPE
from kaspar.broker.metrics import BrokerMetrics, BrokerState, BrokerView
from kaspar.config import BrokerConfig
from kaspar.web.identity import Scheme
from kaspar.web.pages import OPEN, PageSecurity, PageServer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

SILENT_SECONDS: Final = 5.0
"""A broker whose loop has not run its timer for this long is unhealthy."""

_BREATH_SECONDS: Final = 0.00005


def health_problem(metrics: BrokerMetrics, broker: BrokerView) -> str | None:
    """Why the broker should be restarted or looked at, as a sentence; None if it is healthy."""
    silent = metrics.stalls.silent_seconds()
    if silent > SILENT_SECONDS:
        return f"The event loop has not run for {silent:.1f} s."
    directories = broker.log_dirs()
    if directories and not any(directory.online for directory in directories):
        return "All log directories are offline: " + ", ".join(directory.path for directory in directories) + "."
    return None


def readiness_problem(metrics: BrokerMetrics, broker: BrokerView) -> str | None:
    """Why clients should not be sent to this broker, as a sentence; None if they should."""
    state = broker.state()
    if state is not BrokerState.RUNNING:
        return f"The broker does not serve clients: it is {state.name.lower().replace('_', ' ')}."
    return health_problem(metrics, broker) or broker.controller_problem()


def _written_with_breaths(chunks: Iterable[bytes]) -> bytes:
    """Join the chunks, with a pause after each. This blocks the thread's own loop, which has nothing else to do."""
    page = bytearray()
    for chunk in chunks:
        page += chunk
        # A real pause: after a sleep of zero seconds this thread would take the lock again before the other has woken
        # up.
        time.sleep(_BREATH_SECONDS)
    return bytes(page)


def make_app(metrics: BrokerMetrics, broker: BrokerView) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    from kaspar.broker.metrics.catalogue import metrics_page

    async def show_metrics(request: "Request") -> "Response":
        names = frozenset(request.query_params.getlist("name[]"))
        page = _written_with_breaths(metrics_page(metrics, broker, names))
        return Response(page, headers={"content-type": CONTENT_TYPE})

    async def show_health(request: "Request") -> "Response":
        return respond(health_problem(metrics, broker))

    async def show_readiness(request: "Request") -> "Response":
        return respond(readiness_problem(metrics, broker))

    def respond(problem: str | None) -> "Response":
        return PlainTextResponse(f"{problem or 'ok'}\n", status_code=503 if problem else 200)

    return Starlette(
        routes=[
            Route("/metrics", show_metrics),
            Route("/healthz", show_health),
            Route("/readyz", show_readiness),
        ]
    )


class HttpServer(PageServer):
    """Serves the broker's pages until it is stopped."""

    def __init__(
        self, metrics: BrokerMetrics, broker: BrokerView, *, host: str, port: int, security: PageSecurity = OPEN
    ) -> None:
        super().__init__(lambda: make_app(metrics, broker), host=host, port=port, security=security)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def page_security(config: BrokerConfig) -> PageSecurity:
    """The security of the pages, by the settings that all HTTP pages share."""
    scheme = config.kaspar_http_authentication
    return PageSecurity(
        config.kaspar_http_tls_certificate_file,
        config.kaspar_http_tls_key_file,
        None if scheme == "none" else Scheme(scheme),
        config.kaspar_http_credentials_file,
    )
