"""Partitions that a request creates or deletes, charged to its client's quota (KIP-599).

A version from which on the quota is strict refuses what comes after the tokens are gone; older clients would not know
the error code, and are only throttled. What the controller refuses for other reasons is given back.

The tokens are those of the broker that got the request. Clients send such requests to the controller's broker.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.network.api import RequestContext
from kaspar.network.gates import Principal
from kaspar.quotas.clients import MutationUsage

T = TypeVar("T")

EXCEEDED = Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")


class MutationQuota(Protocol):
    def mutation_usage(self, principal: Principal, client_id: str | None) -> MutationUsage | None: ...

    def now_ms(self) -> int: ...


class MutationCharges:
    """Of one request."""

    def __init__(self, quota: MutationQuota, context: RequestContext, *, strict_since: int) -> None:
        self._usage = quota.mutation_usage(context.principal, context.client_id)
        self._strict = context.version >= strict_since
        self._now_ms = quota.now_ms
        self.throttle_time_ms = 0
        """For how long the client is throttled."""

    def allowed(self, items: Sequence[T], partitions_of: Callable[[T], int]) -> list[T]:
        """Those that may be carried out, which are charged."""
        usage = self._usage
        if usage is None:
            return list(items)
        return [item for item in items if self._take(usage, partitions_of(item))]

    def _take(self, usage: MutationUsage, partitions: int) -> bool:
        if partitions <= 0:
            return True
        now_ms = self._now_ms()
        throttle_time_ms = usage.take(partitions, now_ms, strict=self._strict)
        if throttle_time_ms:
            self.throttle_time_ms = max(self.throttle_time_ms, throttle_time_ms)
            usage.throttled(throttle_time_ms, now_ms)
        return not (throttle_time_ms and self._strict)

    def give_back(self, partitions: Iterable[int]) -> None:
        """Those of items that were allowed, and were refused by the controller."""
        if self._usage is not None and (amount := sum(partitions)) > 0:
            self._usage.take(-amount, self._now_ms(), strict=False)
