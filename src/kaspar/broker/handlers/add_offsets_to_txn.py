"""AddOffsetsToTxn: adds a group's partition of `__consumer_offsets` to a transaction, so that it can commit offsets."""

from collections.abc import Awaitable, Callable
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS
from kaspar.broker.coordination.transactions import Transactions
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kaspar.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from kaspar.protocol.schema import Message

FIRST_WITH_PRODUCER_FENCED: Final = 2


class AddOffsetsToTxnHandler:
    def __init__(self, transactions: Transactions, partition_of_group: Callable[[str], int]) -> None:
        self._transactions = transactions
        self._partition_of_group = partition_of_group

    def __call__(self, context: RequestContext, request: AddOffsetsToTxnRequest) -> HandlerResult:
        def refused(code: ErrorCode) -> AddOffsetsToTxnResponse:
            if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            return AddOffsetsToTxnResponse(error_code=code)

        result = self._transactions.add_partitions(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            frozenset({TopicPartition(CONSUMER_OFFSETS, self._partition_of_group(request.group_id))}),
            version=0,
            refused=refused,
        )
        return _response(result) if isinstance(result, Message) else _response_later(result)


async def _response_later(result: Awaitable[Message]) -> Message:
    return _response(await result)


def _response(result: Message) -> Message:
    """The response for a result: success, or the refusal itself."""
    return AddOffsetsToTxnResponse() if isinstance(result, AddPartitionsToTxnResult) else result
