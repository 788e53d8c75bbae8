"""Requests whose time counts against their client's quota (KIP-124).

The time is what handling a request takes on the event loop. It is known only after the request is handled, so it counts
towards the throttle time of the next one. This is put in front of the pipeline only while such a quota is set.
"""

from time import perf_counter
from typing import Protocol

from kaspar.network.connection import Buffers, Connection, RequestHandler, Slot


class CountTime(Protocol):
    def __call__(self, connection: Connection, started: float) -> None:
        """Count the time of the request that has last passed the gate, where its client and exemption are known."""
        ...


class TimedRequests:
    def __init__(self, requests: RequestHandler, count: CountTime) -> None:
        self._requests = requests
        self._count = count

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        started = perf_counter()
        outcome = self._requests.handle(connection, buffer, start, end, received)
        self._count(connection, started)
        return outcome
