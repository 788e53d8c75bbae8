"""Connections whose client is not known yet: it has not authenticated, or, where nobody has to, sent no request.

They cost a stranger nothing, so they are bounded in number and in time, over all listeners of a broker. At the limit
the oldest one goes: a client takes milliseconds to authenticate, and a flood of connections must not keep it out.
"""

import time
from typing import Protocol

from kaspar.network.gates import Principal


class Stranger(Protocol):
    """A connection."""

    principal: Principal | None


class Strangers:
    def __init__(self, max_connections: int, timeout_ms: int) -> None:
        self.max_connections = max_connections
        self.timeout_ms = timeout_ms
        self._since: dict[Stranger, float] = {}
        """Connections in the order in which they were opened. Some may be known by now."""

    def opened(self, connection: Stranger) -> Stranger | None:
        """One more: which one has to go for it, if any."""
        self._since[connection] = time.perf_counter()
        if len(self._since) > self.max_connections:
            self._forget_known()
            if len(self._since) > self.max_connections:
                return self._take_oldest()
        return None

    def closed(self, connection: Stranger) -> None:
        self._since.pop(connection, None)

    def overdue(self) -> list[Stranger]:
        """Those that have been strangers for too long, which have to go."""
        self._forget_known()
        begun_before = time.perf_counter() - self.timeout_ms / 1000
        return [connection for connection, since in self._since.items() if since <= begun_before]

    def _take_oldest(self) -> Stranger:
        oldest = next(iter(self._since))
        del self._since[oldest]
        return oldest

    def _forget_known(self) -> None:
        self._since = {connection: since for connection, since in self._since.items() if connection.principal is None}
