"""AddPartitionsToTxn: adds partitions to transactions, or verifies for a leader that they belong to them.

Up to version 3 a client names one transaction. From version 4 on a broker names several, for clients that use
transactions v2, or only to verify (`verify_only`). If a partition of a transaction cannot be added, none of them is.
"""

import functools
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.tickets import Response
from kaspar.broker.coordination.transactions import Transactions
from kaspar.broker.handlers.combined import combined
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from kaspar.protocol.schema import Message
from kaspar.transactions.partitions import result_of

FIRST_WITH_PRODUCER_FENCED: Final = 2
FIRST_WITH_SEVERAL: Final = 4


class AddPartitionsToTxnHandler:
    def __init__(self, transactions: Transactions, images: ImageSource) -> None:
        self._transactions = transactions
        self._images = images

    def __call__(self, context: RequestContext, request: AddPartitionsToTxnRequest) -> HandlerResult:
        results = (self._result(context, transaction) for transaction in _transactions(context, request))
        return combined(results, functools.partial(_response, context))

    def _result(self, context: RequestContext, transaction: AddPartitionsToTxnTransaction) -> Response:
        """The result for one transaction, an AddPartitionsToTxnResult."""
        transactional_id = transaction.transactional_id
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        partitions = frozenset(
            TopicPartition(topic.name, partition) for topic in transaction.topics for partition in topic.partitions
        )
        image = self._images.current
        unknown = {partition for partition in partitions if not image.has_partition(partition)}
        if unknown:
            return result_of(
                transactional_id,
                {
                    partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if partition in unknown
                    else ErrorCode.OPERATION_NOT_ATTEMPTED
                    for partition in sorted(partitions)
                },
            )

        def refused(code: ErrorCode) -> AddPartitionsToTxnResult:
            if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            return result_of(transactional_id, dict.fromkeys(sorted(partitions), code))

        transactions = self._transactions
        if transaction.verify_only:
            return transactions.verify_partitions(transactional_id, producer, partitions, refused=refused)
        version = 2 if context.version >= FIRST_WITH_SEVERAL else 0
        return transactions.add_partitions(transactional_id, producer, partitions, version=version, refused=refused)


def _transactions(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> tuple[AddPartitionsToTxnTransaction, ...]:
    if context.version >= FIRST_WITH_SEVERAL:
        return request.transactions
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return (only,)


def _response(context: RequestContext, parts: list[Message]) -> AddPartitionsToTxnResponse:
    results = tuple(part for part in parts if isinstance(part, AddPartitionsToTxnResult))
    if context.version >= FIRST_WITH_SEVERAL:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    (only,) = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=only.topic_results)
