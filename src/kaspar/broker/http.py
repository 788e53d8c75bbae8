"""The broker's pages for monitoring, over HTTP: /metrics for Prometheus, /healthz and /readyz for supervisors.

They are served from a thread with an event loop of its own, so that health can be told when the broker's loop stands
still. That thread also imports what only it needs, so that a start does not wait for it. While the page is written
the thread lets go of the interpreter's lock every millisecond or two: a scrape must not delay a produce.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.base.exposition import CONTENT_TYPE
from kaspar.base.log import get_log
from kaspar.broker.metrics import BrokerMetrics, BrokerState, BrokerView

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = get_log(__name__)

SILENT_SECONDS: Final = 5.0
"""A broker whose loop has not run its timer for this long is not healthy."""

_BREATH_SECONDS: Final = 0.00005
_STOP_SECONDS: Final = 5.0
_BACKLOG: Final = 64


def health_problem(metrics: BrokerMetrics, broker: BrokerView) -> str | None:
    """Why the broker should be restarted or looked after, as a sentence; None when it is well."""
    silent = metrics.stalls.silent_seconds()
    if silent > SILENT_SECONDS:
        return f"The event loop has not run for {silent:.1f} s."
    directories = broker.log_dirs()
    if directories and not any(directory.online for directory in directories):
        return "All log directories are offline: " + ", ".join(directory.path for directory in directories) + "."
    return None


def readiness_problem(metrics: BrokerMetrics, broker: BrokerView) -> str | None:
    """Why clients should not be sent to this broker, as a sentence; None when they should."""
    state = broker.state()
    if state is not BrokerState.RUNNING:
        return f"The broker does not serve clients: it is {state.name.lower().replace('_', ' ')}."
    return health_problem(metrics, broker)


def _written_with_breaths(chunks: Iterable[bytes]) -> bytes:
    """All chunks as one, with a pause after each. It blocks this thread's loop, which has nothing better to do."""
    page = bytearray()
    for chunk in chunks:
        page += chunk
        # A real pause: a sleep of zero seconds would take the lock again before the other thread has woken up.
        time.sleep(_BREATH_SECONDS)
    return bytes(page)


def make_app(metrics: BrokerMetrics, broker: BrokerView) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    from kaspar.broker.metrics.catalogue import metrics_page

    async def show_metrics(request: "Request") -> "Response":
        return Response(_written_with_breaths(metrics_page(metrics, broker)), headers={"content-type": CONTENT_TYPE})

    async def show_health(request: "Request") -> "Response":
        return answer(health_problem(metrics, broker))

    async def show_readiness(request: "Request") -> "Response":
        return answer(readiness_problem(metrics, broker))

    def answer(problem: str | None) -> "Response":
        return PlainTextResponse(f"{problem or 'ok'}\n", status_code=503 if problem else 200)

    return Starlette(
        routes=[
            Route("/metrics", show_metrics),
            Route("/healthz", show_health),
            Route("/readyz", show_readiness),
        ]
    )


class HttpServer:
    """Serves the pages until it is stopped. Several may run in one process; it sets no signal handlers."""

    def __init__(self, metrics: BrokerMetrics, broker: BrokerView, *, host: str, port: int) -> None:
        self._metrics = metrics
        self._broker = broker
        self._host = host
        self._socket = self._bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name=f"kaspar-http-{self.port}", daemon=True)
        self._lock = threading.Lock()
        self._server: uvicorn.Server | None = None
        self._stopping = False

    @staticmethod
    def _bind(host: str, port: int) -> socket.socket:
        """Bound here rather than in the thread: a wrong address must stop the start with a sentence."""
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            return socket.create_server(
                (address[0], address[1]),
                family=family,
                backlog=_BACKLOG,
                dualstack_ipv6=family == socket.AF_INET6 and not host and socket.has_dualstack_ipv6(),
            )
        except socket.gaierror as problem:
            raise KasparError(f"the metrics page's host '{host}' is not known here: {problem.strerror}") from None
        except OSError as problem:
            raise KasparError(f"cannot serve the metrics page on {host or '*'}:{port}: {problem.strerror}") from None

    def start(self) -> None:
        """Returns at once. A client that comes before the thread is up waits in the socket's queue."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and closes the port. It waits, so do not call it on an event loop. Safe to call twice."""
        with self._lock:
            self._stopping = True
            if self._server is not None:
                self._server.should_exit = True
        if self._thread.ident is None:
            self._socket.close()
            return
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            log.warning("the metrics page's thread did not end in time", port=self.port)

    def _run(self) -> None:
        try:
            server = self._make_server()
            with self._lock:
                self._server = server
                server.should_exit = self._stopping
            if not server.should_exit:
                with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                    runner.run(server.serve(sockets=[self._socket]))
        except Exception:  # the edge of this thread: a broker without its metrics page still serves clients
            log.exception("the metrics page is gone", port=self.port)
        finally:
            self._socket.close()

    def _make_server(self) -> "uvicorn.Server":
        import uvicorn

        config = uvicorn.Config(
            make_app(self._metrics, self._broker),
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="none",
            log_config=None,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
        # Not as an argument: uvicorn would then take the handlers off a logger that the whole process shares.
        config.access_log = False
        return uvicorn.Server(config)
