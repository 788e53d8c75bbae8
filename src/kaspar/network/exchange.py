"""One request and its response: what is known of it, what is measured, and its place among the connection's responses.

An exchange is the slot of its response. It joins the order of responses only if it waits. Every request but the short
forms of network/pipeline.py has one.
"""

import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

from kaspar.base.errors import Refused
from kaspar.network.api import Response
from kaspar.network.connection import Buffers, Connection, Slot
from kaspar.network.gates import Principal
from kaspar.network.request_metrics import RequestMetrics
from kaspar.network.responses import count_errors, encode_response
from kaspar.protocol.headers import RequestHeader

Outcome: TypeAlias = Buffers | Slot | None
"""What becomes of a request: its response, None where it has none, or, if it is finished later, its exchange."""


class Exchange(Slot):
    __slots__ = (
        "_waits_since",
        "correlation_id",
        "header",
        "metrics",
        "principal",
        "received",
        "request_bytes",
        "throttle_time_ms",
        "version",
        "when_finished",
    )

    def __init__(
        self,
        connection: Connection,
        header: RequestHeader,
        metrics: RequestMetrics,
        received: float,
        request_bytes: int,
        principal: Principal,
        throttle_time_ms: int,
    ) -> None:
        super().__init__(connection)
        self.header = header
        _, self.version, self.correlation_id, _, _ = header
        self.metrics = metrics
        """Of its API. A handler may choose others: fetches of followers are measured apart from those of consumers."""
        self.received = received
        self.request_bytes = request_bytes
        self.principal = principal
        self.throttle_time_ms = throttle_time_ms
        """To be set in the response."""
        self._waits_since = received
        self.when_finished: Callable[[Exchange, float, float], None] | None = None
        """Called with the local and the remote time of a request that waited, in seconds, for the log of requests."""

    # -- a response at once ------------------------------------------------------------------------------------------

    def measured(self, outcome: Outcome) -> Outcome:
        """The outcome, which is counted if it is final."""
        if not isinstance(outcome, Slot):
            self.metrics.inline(self.version, time.perf_counter() - self.received, self.request_bytes)
        return outcome

    def throttle(self, throttle_time_ms: int) -> None:
        """Its client is over a quota that is known only by now: the connection's next request waits for so long."""
        if throttle_time_ms > self.throttle_time_ms:
            self.throttle_time_ms = throttle_time_ms
            self.connection.throttle(throttle_time_ms)
            self.metrics.throttled(throttle_time_ms / 1000)

    # -- a response that comes later ---------------------------------------------------------------------------------

    def wait(self, *, large: bool = False) -> None:
        """Its response comes later, in the order of requests. `large`: it may take megabytes."""
        self.large = large
        self.wait_unordered()
        self.connection.enqueue(self)

    def wait_unordered(self) -> None:
        """It is finished later, and has no response: `finish` says when."""
        self._waits_since = time.perf_counter()

    def respond(self, response: Response) -> None:
        try:
            encoded = encode_response(self.version, self.correlation_id, response, self.throttle_time_ms)
        except Exception as problem:  # the caller is a coordinator at work, which must not be interrupted
            self.fail(problem)
        else:
            count_errors(self.metrics, self.version, response)
            self.fill(encoded)

    def refuse(self, refusal: Refused) -> None:
        """All of the request is refused, in a way that its response cannot express: the connection is closed."""
        self.connection.refuse(f"{self.metrics.name} could not be carried out: {refusal.message}")

    def handed_over(self) -> None:
        self._release()
        self.finish()

    def finish(self) -> None:
        waits_since = self._waits_since
        local_s, remote_s = waits_since - self.received, time.perf_counter() - waits_since
        self.metrics.delayed(self.version, local_s, remote_s, self.request_bytes)
        if self.when_finished is not None:
            self.when_finished(self, local_s, remote_s)


class FrameHandler(Protocol):
    """Handles the requests of one API as the bytes that they came in."""

    @property
    def metrics(self) -> RequestMetrics: ...

    def handle(self, exchange: Exchange, frame: memoryview) -> Outcome:
        """`frame` is the whole request, its header included. It is only valid during the call."""
        ...
