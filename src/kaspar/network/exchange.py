"""One request and its response: its header, its measurements, and its place among the connection's responses.

An exchange is the slot of its response, and is queued only if it waits. Every request has one, except for the short
forms of network/pipeline.py.
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
"""The result for a request: its response, None where it has none, or, if it is finished later, its exchange."""


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
        """The metrics of its API. A handler may change them: fetches of followers are measured separately."""
        self.received = received
        self.request_bytes = request_bytes
        self.principal = principal
        self.throttle_time_ms = throttle_time_ms
        """The throttle time for the response."""
        self._waits_since = received
        self.when_finished: Callable[[Exchange, float, float], None] | None = None
        """Called for the request log with the local and the remote time, in seconds, of a request that waited."""

    # -- an immediate response ---------------------------------------------------------------------------------------

    def measured(self, outcome: Outcome) -> Outcome:
        """Record the request if the outcome is final. Returns the outcome."""
        if not isinstance(outcome, Slot):
            self.metrics.inline(self.version, time.perf_counter() - self.received, self.request_bytes)
        return outcome

    def throttle(self, throttle_time_ms: int) -> None:
        """Throttle the client, whose quota was found to be exceeded only now. The connection's next request waits."""
        if throttle_time_ms > self.throttle_time_ms:
            self.throttle_time_ms = throttle_time_ms
            self.connection.throttle(throttle_time_ms)
            self.metrics.throttled(throttle_time_ms / 1000)

    # -- a later response --------------------------------------------------------------------------------------------

    def wait(self, *, large: bool = False) -> None:
        """Queue this exchange: its response comes later. `large`: it may take megabytes."""
        self.large = large
        self.wait_unordered()
        self.connection.enqueue(self)

    def wait_unordered(self) -> None:
        """Wait without a place in the queue: the request has no response, and is over when `finish` is called."""
        self._waits_since = time.perf_counter()

    def respond(self, response: Response) -> None:
        try:
            encoded = encode_response(self.version, self.correlation_id, response, self.throttle_time_ms)
        except Exception as problem:  # the caller is a coordinator, which must not be interrupted
            self.fail(problem)
        else:
            count_errors(self.metrics, self.version, response)
            self.fill(encoded)

    def refuse(self, refusal: Refused) -> None:
        """Close the connection: the whole request is refused, which its response cannot express."""
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
    """Handles the requests of one API in encoded form."""

    @property
    def metrics(self) -> RequestMetrics: ...

    def handle(self, exchange: Exchange, frame: memoryview) -> Outcome:
        """Handle a request. `frame` includes its header, and is only valid during the call."""
        ...
