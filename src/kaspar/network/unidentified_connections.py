"""Connections whose client has not authenticated yet or, without authentication, has not sent a request.

Opening one costs a client nothing, so their number and duration are limited, over all listeners of a broker. At the
limit the oldest is closed: a client takes milliseconds to authenticate, and a flood of connections must not keep it
out.
"""

import time
from typing import Protocol

from kaspar.network.gates import Principal


class Unidentified(Protocol):
    """A connection."""

    principal: Principal | None


class UnidentifiedConnections:
    def __init__(self, max_connections: int, timeout_ms: int) -> None:
        self.max_connections = max_connections
        self.timeout_ms = timeout_ms
        self._since: dict[Unidentified, float] = {}
        """Connections and when they were opened, in this order. Some may be identified by now."""

    def opened(self, connection: Unidentified) -> Unidentified | None:
        """Add a connection. Returns the one to close to make room for it, if any."""
        self._since[connection] = time.perf_counter()
        if len(self._since) > self.max_connections:
            self._forget_identified()
            if len(self._since) > self.max_connections:
                return self._take_oldest()
        return None

    def closed(self, connection: Unidentified) -> None:
        self._since.pop(connection, None)

    def overdue(self) -> list[Unidentified]:
        """Connections that have been unidentified for too long and must be closed."""
        self._forget_identified()
        begun_before = time.perf_counter() - self.timeout_ms / 1000
        return [connection for connection, since in self._since.items() if since <= begun_before]

    def _take_oldest(self) -> Unidentified:
        oldest = next(iter(self._since))
        del self._since[oldest]
        return oldest

    def _forget_identified(self) -> None:
        self._since = {connection: since for connection, since in self._since.items() if connection.principal is None}
