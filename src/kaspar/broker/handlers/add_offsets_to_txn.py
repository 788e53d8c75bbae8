"""AddOffsetsToTxn: the offsets of a group become part of a transaction: the partition of `__consumer_offsets` they are
kept in is added to it.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kaspar.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_PRODUCER_FENCED: Final = 2


def handle(broker: "Broker", context: RequestContext, request: AddOffsetsToTxnRequest) -> Answer:
    def refused(code: ErrorCode) -> AddOffsetsToTxnResponse:
        if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)

    answer = broker.transactions.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        frozenset({TopicPartition(CONSUMER_OFFSETS, broker.groups.runtime.partition_of(request.group_id))}),
        version=0,
        refused=refused,
    )
    return _response(answer) if isinstance(answer, Message) else _when_answered(answer)


async def _when_answered(answer: Awaitable[Message]) -> Message:
    return _response(await answer)


def _response(answer: Message) -> Message:
    """Added, unless it was refused."""
    return AddOffsetsToTxnResponse() if isinstance(answer, AddPartitionsToTxnResult) else answer
