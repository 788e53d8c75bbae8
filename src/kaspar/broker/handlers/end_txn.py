"""EndTxn: a transaction is committed or aborted. From version 5 on, by the rules of transactions v2 (KIP-890)."""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.coordination import Decision, Now, Ticket
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker
    from kaspar.transactions.shard import TransactionShard

FIRST_WITH_PRODUCER_FENCED: Final = 2
FIRST_OF_TRANSACTIONS_V2: Final = 5


def handle(broker: "Broker", context: RequestContext, request: EndTxnRequest) -> Answer:
    version = 2 if context.version >= FIRST_OF_TRANSACTIONS_V2 else 0

    def decide(shard: "TransactionShard", ticket: Ticket, now: Now) -> Decision:
        return shard.end(request, ticket, now, version=version)

    def refused(code: ErrorCode) -> EndTxnResponse:
        if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(error_code=code)

    return broker.transactions.runtime.submit(request.transactional_id, decide, refused)
