"""ListTransactions: the transactional ids that this broker coordinates, by state, producer, age and pattern."""

from collections.abc import Callable, Iterable
from typing import Final

import re2

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.coordination.transactions import TransactionRuntime
from kaspar.broker.handlers import slices
from kaspar.coordination import Now
from kaspar.network.api import HandlerResult, PartlyEncoded, RequestContext
from kaspar.network.large_requests import LargeRequests
from kaspar.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kaspar.transactions.listing import unknown_states

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


class ListTransactionsHandler:
    def __init__(self, transactions: TransactionRuntime, large_requests: LargeRequests, now: Callable[[], Now]) -> None:
        self._transactions = transactions
        self._large_requests = large_requests
        self._now = now

    def __call__(self, context: RequestContext, request: ListTransactionsRequest) -> HandlerResult:
        code = self._transactions.why_not_listed()
        if code is not ErrorCode.NONE:
            return ListTransactionsResponse(error_code=code, transaction_states=())
        try:
            matches = _matcher(request.transactional_id_pattern)
        except Refused as refusal:
            return ListTransactionsResponse(error_code=refusal.code, transaction_states=())
        now = self._now()
        shards = self._transactions.active_shards().values()
        listed = (each for shard in shards for each in shard.list_transactions(request, matches, now))
        unknown = unknown_states(request)
        if sum(len(shard.transactions) for shard in shards) > slices.AT_ONCE:
            return self._in_slices(listed, unknown, context.version)
        return ListTransactionsResponse(
            unknown_state_filters=unknown, transaction_states=tuple(each for each in listed if each is not None)
        )

    async def _in_slices(
        self, listed: Iterable[TransactionState | None], unknown: tuple[str, ...], version: int
    ) -> PartlyEncoded:
        response = ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=())
        states = await slices.encoded(self._large_requests, listed, version)
        return PartlyEncoded(response, {"transaction_states": states}, {})


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    """A function that tells whether an id matches from start to end. RE2 takes linear time, whatever the pattern."""
    if not pattern:
        return lambda transactional_id: True
    try:
        matches = re2.compile(pattern, _OPTIONS).fullmatch
    except re2.error as problem:
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(problem)) from None
    return lambda transactional_id: matches(transactional_id) is not None
