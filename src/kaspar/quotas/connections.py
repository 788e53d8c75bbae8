"""How fast new connections are accepted (KIP-612): by the whole broker, by each listener, from each address.

Kafka's ConnectionQuotas: above the rate of the broker or of a listener, accepting pauses. A connection above the rate
of its address is accepted and closed after the throttle time, so that its client does not reconnect at once. Such a
connection does not count towards the rate of the address.
"""

import functools
import ipaddress
from collections.abc import Mapping
from typing import Final

from kaspar.quotas.entities import CONNECTION_CREATION_RATE, DEFAULT, QuotasByEntity
from kaspar.quotas.rates import Rate, Windows

UNLIMITED: Final = (1 << 31) - 1
MAX_ADDRESSES: Final = 20_000
"""Beyond this number, the counts of all addresses are forgotten."""


class ConnectionRates:
    def __init__(self) -> None:
        self._windows = Windows()
        self._limit = UNLIMITED
        self._listener_limits: Mapping[str, int] = {}
        self._ip_limits: dict[str, float] = {}
        self._broker_rate: Rate | None = None
        self._listener_rates: dict[str, Rate] = {}
        self._ip_rates: dict[str, Rate] = {}

    def configure(self, windows: Windows, limit: int, listener_limits: Mapping[str, int]) -> None:
        """Apply `max.connection.creation.rate`: the broker's, and that of each listener that has its own."""
        if windows != self._windows:
            self._windows = windows
            self._broker_rate = None
            self._listener_rates.clear()
            self._ip_rates.clear()
        self._limit = limit
        self._listener_limits = listener_limits

    def update(self, quotas: QuotasByEntity) -> None:
        """Apply changed quotas of addresses."""
        self._ip_limits = {
            plain_address(entity.ip) if entity.ip else DEFAULT: limits[CONNECTION_CREATION_RATE]
            for entity, limits in quotas.items()
            if entity.ip is not None and CONNECTION_CREATION_RATE in limits
        }
        if not self._ip_limits:
            self._ip_rates.clear()

    @property
    def _max_throttle_ms(self) -> int:
        return self._windows.size_ms

    def pause_ms(self, listener: str, now_ms: int, *, between_brokers: bool = False) -> int:
        """Count an accepted connection. Returns how long this listener accepts no other. The broker's rate does not
        delay connections between brokers.
        """
        pauses = [0]
        limit = self._listener_limits.get(listener, UNLIMITED)
        if limit < UNLIMITED:
            rate = self._listener_rates.get(listener)
            if rate is None:
                rate = self._listener_rates[listener] = Rate(self._windows, now_ms)
            rate.record(1, now_ms)
            pauses.append(rate.throttle_time_ms(max(limit, 1e-9), now_ms))
        if self._limit < UNLIMITED:
            if self._broker_rate is None:
                self._broker_rate = Rate(self._windows, now_ms)
            self._broker_rate.record(1, now_ms)
            if not between_brokers:
                pauses.append(self._broker_rate.throttle_time_ms(max(self._limit, 1e-9), now_ms))
        return min(max(pauses), self._max_throttle_ms)

    def refused_for_ms(self, ip: str, now_ms: int) -> int:
        """Count a connection from this address. If the address exceeds its rate, returns how long to keep the
        connection open before closing it, otherwise 0.
        """
        if not self._ip_limits:
            return 0
        address = plain_address(ip)
        limit = self._ip_limits.get(address) or self._ip_limits.get(DEFAULT)
        if limit is None:
            return 0
        rate = self._ip_rates.get(address)
        if rate is None:
            if len(self._ip_rates) >= MAX_ADDRESSES:
                self._ip_rates.clear()
            rate = self._ip_rates[address] = Rate(self._windows, now_ms)
        rate.record(1, now_ms)
        throttle_time_ms = min(rate.throttle_time_ms(limit, now_ms), self._max_throttle_ms)
        if throttle_time_ms:
            rate.record(-1, now_ms)
        return throttle_time_ms


@functools.lru_cache(maxsize=4096)
def plain_address(text: str) -> str:
    """A unique form of each address: an IPv4 address on an IPv6 socket is the same as the plain one. A text that is not
    an address is returned unchanged.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
