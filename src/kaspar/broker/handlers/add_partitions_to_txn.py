"""AddPartitionsToTxn: partitions become part of a transaction, or, for a leader that asks, are found to be.

Up to version 3 a client names one transaction; from version 4 on a broker names several, for clients that follow
transactions v2, or to ask only (`verify_only`). If any partition of a transaction cannot be added, none of them is.
"""

import functools
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_answers import together
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from kaspar.protocol.schema import Message
from kaspar.transactions.partitions import result_of

if TYPE_CHECKING:
    from kaspar.broker.coordination import tickets
    from kaspar.broker.server import Broker

FIRST_WITH_PRODUCER_FENCED: Final = 2
FIRST_WITH_SEVERAL: Final = 4


def handle(broker: "Broker", context: RequestContext, request: AddPartitionsToTxnRequest) -> Answer:
    answers = (_answer(broker, context, transaction) for transaction in _transactions(context, request))
    return together(answers, functools.partial(_response, context))


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


def _answer(broker: "Broker", context: RequestContext, transaction: AddPartitionsToTxnTransaction) -> "tickets.Answer":
    """An AddPartitionsToTxnResult."""
    transactional_id = transaction.transactional_id
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    partitions = frozenset(
        TopicPartition(topic.name, partition) for topic in transaction.topics for partition in topic.partitions
    )
    unknown = {partition for partition in partitions if not broker.image.has_partition(partition)}
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

    if transaction.verify_only:
        return broker.transactions.verify_partitions(transactional_id, producer, partitions, refused=refused)
    version = 2 if context.version >= FIRST_WITH_SEVERAL else 0
    return broker.transactions.add_partitions(transactional_id, producer, partitions, version=version, refused=refused)


def _response(context: RequestContext, answers: list[Message]) -> AddPartitionsToTxnResponse:
    results = tuple(answer for answer in answers if isinstance(answer, AddPartitionsToTxnResult))
    if context.version >= FIRST_WITH_SEVERAL:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    (only,) = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=only.topic_results)
