"""What a listener counts of its clients' handshakes and log-ins, as Kafka's Selector does.

A handshake of TLS without SASL is an authentication too. One by SASL counts when the exchange is over, and one that is
repeated for a session to go on (KIP-368) counts apart. Written by the event loop, read by any thread.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

from kaspar.base.metrics import RecentRate

LATENCY_WINDOW_S: Final = 60.0
_KEPT_LATENCIES: Final = 1000


class Meter:
    """How often something happened: since the start, and in a second of the last minute."""

    __slots__ = ("_now", "_rate", "total")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._rate = RecentRate(now())
        self.total = 0

    def mark(self) -> None:
        self.total += 1
        self._rate.mark(self._now())

    def per_second(self) -> float:
        return self._rate.per_second(self._now())


class TlsKind(NamedTuple):
    """What a connection has negotiated, by the names that Java uses."""

    cipher: str
    protocol: str


class AuthenticationMetrics:
    """Those of one listener."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.succeeded = Meter(now)
        self.succeeded_without_reauthentication = 0
        """By clients that could not authenticate again: certificates, and SaslAuthenticate of version 0 or none."""
        self.failed = Meter(now)
        self.reauthenticated = Meter(now)
        self.failed_to_reauthenticate = Meter(now)
        self.expired = 0
        """Connections closed because their session was over."""
        self._now = now
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_KEPT_LATENCIES)
        self._tls: dict[Hashable, TlsKind] = {}

    def reauthenticated_in(self, seconds: float) -> None:
        self.reauthenticated.mark()
        self._latencies.append((self._now(), seconds * 1000))

    def recent_latencies_ms(self) -> list[float]:
        """Of re-authentications of the last minute."""
        since = self._now() - LATENCY_WINDOW_S
        return [latency_ms for at, latency_ms in list(self._latencies) if at >= since]

    # -- encrypted connections ---------------------------------------------------------------------------------------

    def encrypted(self, connection: Hashable, kind: TlsKind) -> None:
        self._tls[connection] = kind

    def closed(self, connection: Hashable) -> None:
        self._tls.pop(connection, None)

    def open_by_kind(self) -> Mapping[tuple[str, str], int]:
        return Counter[tuple[str, str]](list(self._tls.values()))


NO_AUTHENTICATION: Final = AuthenticationMetrics()
"""That of a listener where nobody authenticates: nothing is ever counted."""
