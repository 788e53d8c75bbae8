"""Requests whose time counts against their client's quota (KIP-124).

The time is what handling a request takes on the event loop. It is known when the request is handled, so it counts for
the throttle time of the next one. This stands in front of the pipeline only while such a quota is set.
"""

from collections.abc import Collection
from time import perf_counter
from typing import Final, Protocol

from kaspar.network.connection import Buffers, Connection, RequestHandler, Slot
from kaspar.network.gates import ANONYMOUS, Principal
from kaspar.protocol.api_keys import ApiKey

FETCH: Final = int(ApiKey.FETCH)
_KEY_BYTES: Final = 2


class CountTime(Protocol):
    def __call__(self, principal: Principal, client_id: str | None, started: float, ended: float) -> None: ...


class TimedRequests:
    def __init__(self, requests: RequestHandler, count: CountTime, exempt: Collection[int]) -> None:
        self._requests = requests
        self._count = count
        self._exempt = exempt

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        api_key = int.from_bytes(buffer[start : start + _KEY_BYTES])  # now: what is in the buffer may change
        started = perf_counter()
        outcome = self._requests.handle(connection, buffer, start, end, received)
        if api_key not in self._exempt and not (api_key == FETCH and connection.is_follower):
            self._count(connection.principal or ANONYMOUS, connection.client_id, started, perf_counter())
        return outcome
