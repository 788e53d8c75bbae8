"""EndTxn: commits or aborts a transaction; from version 5 on by the rules of transactions v2 (KIP-890)."""

from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.transactions import TransactionRuntime
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_WITH_PRODUCER_FENCED: Final = 2
FIRST_OF_TRANSACTIONS_V2: Final = 5


class EndTxnHandler:
    def __init__(self, transactions: TransactionRuntime) -> None:
        self._transactions = transactions

    def __call__(self, context: RequestContext, request: EndTxnRequest) -> HandlerResult:
        version = 2 if context.version >= FIRST_OF_TRANSACTIONS_V2 else 0

        def refused(code: ErrorCode) -> EndTxnResponse:
            if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            return EndTxnResponse(error_code=code)

        return self._transactions.submit(
            request.transactional_id, lambda shard, now: shard.end(request, now, version=version), refused
        )
