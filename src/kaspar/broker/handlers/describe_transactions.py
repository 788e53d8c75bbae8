"""DescribeTransactions: what the coordinator knows of transactional ids, each for itself."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_answers import together
from kaspar.coordination import Now
from kaspar.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kaspar.protocol.schema import Message
from kaspar.transactions.listing import undescribed

if TYPE_CHECKING:
    from kaspar.broker.coordination import tickets
    from kaspar.broker.server import Broker
    from kaspar.transactions.shard import TransactionShard


def handle(broker: "Broker", context: RequestContext, request: DescribeTransactionsRequest) -> Answer:
    return together((_describe(broker, transactional_id) for transactional_id in request.transactional_ids), _response)


def _describe(broker: "Broker", transactional_id: str) -> "tickets.Answer":
    def question(shard: "TransactionShard", now: Now) -> TransactionState:
        return shard.describe(transactional_id, now)

    def refused(code: ErrorCode) -> TransactionState:
        return undescribed(transactional_id, code)

    return broker.transactions.runtime.ask(transactional_id, question, refused)


def _response(answers: list[Message]) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(answer for answer in answers if isinstance(answer, TransactionState))
    )
