"""Counts of the handshakes and authentications of a listener's clients, like those of Kafka's Selector.

A TLS handshake without SASL is an authentication too. A SASL authentication is counted when the exchange is complete,
and a re-authentication (KIP-368) is counted separately. Written by the event loop, read by any thread.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

from kaspar.base.metrics import RecentRate

LATENCY_WINDOW_S: Final = 60.0
_KEPT_LATENCIES: Final = 1000


class Meter:
    """How often something happened: in total, and per second in the last minute."""

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
    """What a connection has negotiated, with Java's names."""

    cipher: str
    protocol: str


class AuthenticationMetrics:
    """The metrics of one listener."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.succeeded = Meter(now)
        self.succeeded_without_reauthentication = 0
        """Successes of clients that cannot re-authenticate: certificates, and SaslAuthenticate version 0 or none."""
        self.failed = Meter(now)
        self.reauthenticated = Meter(now)
        self.failed_to_reauthenticate = Meter(now)
        self.expired = 0
        """Connections that were closed because their session had expired."""
        self._now = now
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_KEPT_LATENCIES)
        self._tls: dict[Hashable, TlsKind] = {}

    def reauthenticated_in(self, seconds: float) -> None:
        self.reauthenticated.mark()
        self._latencies.append((self._now(), seconds * 1000))

    def recent_latencies_ms(self) -> list[float]:
        """The latencies of re-authentications in the last minute."""
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
"""The metrics of a listener without authentication, where nothing is ever counted."""
