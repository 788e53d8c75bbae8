"""Charges the partitions that a request creates or deletes to its client's quota (KIP-599).

In versions with a strict quota, items are refused once the tokens are used up. Older clients do not know the error code
and are only throttled. Charges for items that the controller refuses for other reasons are returned.

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
    """The charges of one request."""

    def __init__(self, quota: MutationQuota, context: RequestContext, *, strict_since: int) -> None:
        self._usage = quota.mutation_usage(context.principal, context.client_id)
        self._strict = context.version >= strict_since
        self._now_ms = quota.now_ms
        self.throttle_time_ms = 0
        """How long the client is throttled."""

    def allowed(self, items: Sequence[T], partitions_of: Callable[[T], int]) -> list[T]:
        """Charge the items, and return those that may be carried out."""
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
        """Return the charges for partitions that were allowed but refused by the controller."""
        if self._usage is not None and (amount := sum(partitions)) > 0:
            self._usage.take(-amount, self._now_ms(), strict=False)
