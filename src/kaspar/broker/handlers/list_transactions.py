"""ListTransactions: the transactional ids that this broker coordinates, by state, producer, age and pattern."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import re2

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import Answer, PartlyEncoded, RequestContext, slices
from kaspar.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kaspar.transactions.listing import unknown_states

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


def handle(broker: "Broker", context: RequestContext, request: ListTransactionsRequest) -> Answer:
    runtime = broker.transactions.runtime
    if runtime.loading_count:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, transaction_states=())
    try:
        matches = _matcher(request.transactional_id_pattern)
    except Refused as refusal:
        return ListTransactionsResponse(error_code=refusal.code, transaction_states=())
    now = broker.now()
    shards = runtime.active_shards().values()
    listed = (each for shard in shards for each in shard.list_transactions(request, matches, now))
    unknown = unknown_states(request)
    if sum(len(shard.transactions) for shard in shards) > slices.AT_ONCE:
        return _in_slices(broker, listed, unknown, context.version)
    return ListTransactionsResponse(
        unknown_state_filters=unknown, transaction_states=tuple(each for each in listed if each is not None)
    )


async def _in_slices(
    broker: "Broker", listed: Iterable[TransactionState | None], unknown: tuple[str, ...], version: int
) -> PartlyEncoded:
    response = ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=())
    return PartlyEncoded(response, {"transaction_states": await slices.encoded(broker, listed, version)}, {})


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether an id matches from beginning to end. RE2 takes time in proportion to it, whatever the pattern."""
    if not pattern:
        return lambda transactional_id: True
    try:
        matches = re2.compile(pattern, _OPTIONS).fullmatch
    except re2.error as problem:
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(problem)) from None
    return lambda transactional_id: matches(transactional_id) is not None
