"""The usage of each client, and how long it is throttled: Kafka's ClientQuotaManager for one kind of quota.

Clients are distinguished by user and client id. Clients that share a quota (all client ids of a user, for example)
share one `Usage`. Nothing is counted while no quota of the kind is set.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from kaspar.quotas.entities import Applied, QuotaEntity, QuotasByEntity, applied_to
from kaspar.quotas.rates import Rate, TokenBucket, Windows

EXPIRY_MS: Final = 60 * 60 * 1000
"""After this time without a request, a client's usage is forgotten (INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS)."""
MAX_CLIENTS: Final = 20_000
"""A bound, because clients choose their client ids. Beyond it, the usage of the clients idle for longest is
forgotten."""
RECORD_EVERY_MS: Final = 10
_EXPIRE_EVERY_MS: Final = 10 * 60 * 1000
_AVERAGE_WINDOWS: Final = Windows(2, 30_000)  # metrics.num.samples and metrics.sample.window.ms


class _Average:
    """The average of the values recorded in the last 30 to 60 seconds, for the metrics."""

    __slots__ = ("_count", "_sum")

    def __init__(self, now_ms: int) -> None:
        self._sum = Rate(_AVERAGE_WINDOWS, now_ms)
        self._count = Rate(_AVERAGE_WINDOWS, now_ms)

    def record(self, number: float, now_ms: int) -> None:
        self._sum.record(number, now_ms)
        self._count.record(1, now_ms)

    def value(self, now_ms: int) -> float:
        count = self._count.observed(now_ms)
        return self._sum.observed(now_ms) / count if count else 0.0


class UsageReading(NamedTuple):
    """The metrics of the clients that share a quota. `tokens` is set for mutation quotas only."""

    user: str
    client_id: str
    rate: float
    throttle_time_ms: float
    tokens: float = 0.0


class _Shared:
    """The common part of all kinds of usage. `limit` is None for clients without a quota, whose usage is counted only
    for the metrics.
    """

    __slots__ = ("_throttle_time", "client_id", "limit", "rate", "user")

    limit: float | None

    def __init__(self, applied: Applied, windows: Windows, now_ms: int) -> None:
        self.user, self.client_id, _ = applied
        self.rate = Rate(windows, now_ms)
        self._throttle_time: _Average | None = None

    @property
    def last_ms(self) -> int:
        return self.rate.last_ms

    def throttled(self, throttle_time_ms: int, now_ms: int) -> None:
        """Record for the metrics that these clients are throttled."""
        if self._throttle_time is None:
            self._throttle_time = _Average(now_ms)
        self._throttle_time.record(throttle_time_ms, now_ms)

    def reading(self, now_ms: int) -> UsageReading:
        throttled = self._throttle_time
        average = 0.0 if throttled is None else throttled.value(now_ms)
        return UsageReading(self.user, self.client_id, self.rate.observed(now_ms), average)


class Usage(_Shared):
    """Usage in bytes or time per second.

    Every request is counted, so counting must be cheap. While the limit cannot be reached, amounts are only added up,
    and are recorded at the latest after RECORD_EVERY_MS or at the end of a sample.
    """

    __slots__ = ("_always_allowed", "_record_at_ms", "_room", "_unrecorded")

    def __init__(self, applied: Applied, windows: Windows, now_ms: int) -> None:
        super().__init__(applied, windows, now_ms)
        self._unrecorded = 0.0
        self._record_at_ms = now_ms
        self.set_limit(applied.limit)

    def set_limit(self, limit: float | None) -> None:
        self.limit = limit
        self._always_allowed = math.inf if limit is None else self.rate.always_allowed(limit)
        self._room = self._always_allowed - self.rate.counted
        """The largest amount that may stay unrecorded."""

    def use(self, amount: float, now_ms: float) -> int:
        """Count an amount. Returns how long the client is throttled."""
        unrecorded = self._unrecorded + amount
        if unrecorded <= self._room and now_ms < self._record_at_ms:
            self._unrecorded = unrecorded
            return 0
        return self._record(amount, int(now_ms))

    def _record(self, amount: float, now_ms: int) -> int:
        rate = self.rate
        self._record_rest(now_ms)
        rate.record(amount, now_ms)
        self._record_at_ms = min(now_ms + RECORD_EVERY_MS, rate.current.start_ms + rate.size_ms)
        self._room = self._always_allowed - rate.counted
        return 0 if self._room >= 0 or self.limit is None else rate.throttle_time_ms(self.limit, now_ms)

    def _record_rest(self, now_ms: int) -> None:
        """Record the unrecorded amount in the current sample, during which it was used."""
        if self._unrecorded:
            self.rate.record(self._unrecorded, min(now_ms, self._record_at_ms - 1))
            self._room -= self._unrecorded
            self._unrecorded = 0.0

    def throttle_time_ms(self, now_ms: float) -> int:
        if self._unrecorded <= self._room or self.limit is None:
            return 0
        self._record_rest(int(now_ms))
        return self.rate.throttle_time_ms(self.limit, int(now_ms))

    def reading(self, now_ms: int) -> UsageReading:
        rate = self.rate.observed(now_ms, self._unrecorded, self._record_at_ms)
        return super().reading(now_ms)._replace(rate=rate)


class MutationUsage(_Shared):
    """Usage in partitions created and deleted (KIP-599)."""

    __slots__ = ("_bucket", "_windows")

    def __init__(self, applied: Applied, windows: Windows, now_ms: int) -> None:
        super().__init__(applied, windows, now_ms)
        self.limit = applied.limit
        self._windows = windows
        self._bucket: TokenBucket | None = None

    def set_limit(self, limit: float | None) -> None:
        self.limit = limit

    def take(self, amount: float, now_ms: int, *, strict: bool) -> int:
        """Count an amount. Returns how long the client is throttled. Strict: while the bucket is exhausted nothing is
        taken, which a time above 0 indicates. Otherwise the amount is always taken.
        """
        if self.limit is None:
            self.rate.record(amount, now_ms)
            return 0
        if self._bucket is None:
            self._bucket = TokenBucket(self._windows, self.limit, now_ms)
        if strict and (throttle_time_ms := self._bucket.throttle_time_ms(self.limit, now_ms)):
            return throttle_time_ms
        self.rate.record(amount, now_ms)
        self._bucket.take(amount, self.limit, now_ms)
        return 0 if strict else self._bucket.throttle_time_ms(self.limit, now_ms)

    def reading(self, now_ms: int) -> UsageReading:
        reading = super().reading(now_ms)
        if self._bucket is None or self.limit is None:
            return reading
        return reading._replace(tokens=self._bucket.observed(self.limit, now_ms))


class _Kind(Protocol):
    @property
    def last_ms(self) -> int: ...
    def set_limit(self, limit: float | None) -> None: ...
    def reading(self, now_ms: int) -> UsageReading: ...


U = TypeVar("U", bound=_Kind)


class ClientQuotas(Generic[U]):
    """The usage of all clients under one kind of quota (`key`)."""

    def __init__(self, key: str, new_usage: Callable[[Applied, Windows, int], U]) -> None:
        self.key = key
        self.enabled = False
        """Whether any quota of this kind is set."""
        self.windows = Windows()
        self._new_usage = new_usage
        self._limits: dict[QuotaEntity, float] = {}
        self.by_client: dict[tuple[str, str | None], U] = {}
        """The usage of recently seen clients, by user and client id. `find` adds the others."""
        self._shared: dict[tuple[str, str], U] = {}
        self._expire_at_ms = 0

    def update(self, quotas: QuotasByEntity, windows: Windows) -> None:
        """Apply changed quotas or settings. Past usage counts against the new quotas."""
        limits = {entity: limits[self.key] for entity, limits in quotas.items() if self.key in limits}
        if windows != self.windows or not limits:
            self._shared.clear()
        self.windows = windows
        self._limits = dict(limits)
        self.by_client.clear()
        self.enabled = bool(limits)

    def usage(self, user: str, client_id: str | None, now_ms: int) -> U:
        """The usage of this client. Call it only while `enabled`."""
        return self.by_client.get((user, client_id)) or self.find(user, client_id, now_ms)

    def find(self, user: str, client_id: str | None, now_ms: int) -> U:
        if now_ms >= self._expire_at_ms or max(len(self.by_client), len(self._shared)) >= MAX_CLIENTS:
            self._expire(now_ms)
        applied = applied_to(self._limits, user, client_id or "")
        if applied.limit == math.inf:
            applied = applied._replace(limit=None)
        shared_by = applied.user, applied.client_id
        usage = self._shared.get(shared_by)
        if usage is None:
            usage = self._shared[shared_by] = self._new_usage(applied, self.windows, now_ms)
        else:
            usage.set_limit(applied.limit)
        self.by_client[user, client_id] = usage
        return usage

    def _expire(self, now_ms: int) -> None:
        self._expire_at_ms = now_ms + _EXPIRE_EVERY_MS
        kept = [item for item in self._shared.items() if now_ms - item[1].last_ms < EXPIRY_MS]
        if len(kept) >= MAX_CLIENTS:
            kept.sort(key=lambda item: item[1].last_ms)
            kept = kept[len(kept) // 2 :]
        self._shared = dict(kept)
        self.by_client.clear()

    def readings(self, now_ms: int) -> Iterable[UsageReading]:
        """For the metrics page, from its own thread."""
        for usage in list(self._shared.values()):
            yield usage.reading(now_ms)


def client_quotas(key: str) -> ClientQuotas[Usage]:
    return ClientQuotas(key, Usage)


def mutation_quotas(key: str) -> ClientQuotas[MutationUsage]:
    return ClientQuotas(key, MutationUsage)
