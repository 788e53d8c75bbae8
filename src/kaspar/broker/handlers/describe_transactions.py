"""DescribeTransactions: the state of transactional ids, from their coordinators."""

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.tickets import Response
from kaspar.broker.coordination.transactions import TransactionRuntime
from kaspar.broker.handlers.combined import combined
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kaspar.protocol.schema import Message
from kaspar.transactions.listing import undescribed


class DescribeTransactionsHandler:
    def __init__(self, transactions: TransactionRuntime) -> None:
        self._transactions = transactions

    def __call__(self, context: RequestContext, request: DescribeTransactionsRequest) -> HandlerResult:
        return combined((self._describe(each) for each in request.transactional_ids), _response)

    def _describe(self, transactional_id: str) -> Response:
        def refused(code: ErrorCode) -> TransactionState:
            return undescribed(transactional_id, code)

        return self._transactions.ask(
            transactional_id, lambda shard, now: shard.describe(transactional_id, now), refused
        )


def _response(states: list[Message]) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(state for state in states if isinstance(state, TransactionState))
    )
