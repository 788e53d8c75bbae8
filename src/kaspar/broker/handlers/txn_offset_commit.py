"""TxnOffsetCommit: a group notes how far it has read, within a producer's transaction.

The partition of `__consumer_offsets` that keeps the group's offsets must belong to that transaction, so that the
transaction's end reaches it. Its coordinator is asked; for clients of transactions v2 it adds the partition by that.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.coordination.active_shard import coordinator_code
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_client import client_of
from kaspar.broker.handlers.known_partitions import split_by_existence
from kaspar.broker.verification import TransactionSupport, verify_transaction
from kaspar.metadata import ClusterImage
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_LOAD_IN_PROGRESS: Final = 2
NO_SEQUENCE: Final = -1


def handle(broker: "Broker", context: RequestContext, request: TxnOffsetCommitRequest) -> Answer:
    known, refusals = _split(broker.image, request)
    if not known.topics:
        return TxnOffsetCommitResponse(topics=refusals)
    if not known.group_id:
        return _join(refusals, _refused(known, ErrorCode.INVALID_GROUP_ID, context.version))
    return _commit(broker, context, known, refusals)


async def _commit(
    broker: "Broker",
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    refusals: tuple[TxnOffsetCommitResponseTopic, ...],
) -> TxnOffsetCommitResponse:
    code = await _verify(broker, context.version, request)
    if code is not ErrorCode.NONE:
        return _join(refusals, _refused(request, coordinator_code(code), context.version))
    client = client_of(context)
    answer = broker.groups.runtime.submit(
        request.group_id,
        lambda shard, ticket, now: shard.commit_in_transaction(request, client, ticket, now),
        lambda code: _refused(request, code, context.version),
    )
    return _join(refusals, answer if isinstance(answer, Message) else await answer)


async def _verify(broker: "Broker", version: int, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Why the group's offsets cannot be part of that transaction."""
    runtime = broker.groups.runtime
    index = runtime.partition_of(request.group_id)
    try:
        runtime.check_active(index)
        partition = broker.partitions.lead(runtime.topic.name, index)
    except Refused as refusal:
        return refusal.code
    refused = await verify_transaction(
        broker,
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        {partition: NO_SEQUENCE},
        TransactionSupport.of_txn_offset_commit(version),
    )
    return refused.get(partition, ErrorCode.NONE)


def _split(
    image: ClusterImage, request: TxnOffsetCommitRequest
) -> tuple[TxnOffsetCommitRequest, tuple[TxnOffsetCommitResponseTopic, ...]]:
    """What may be committed, and the refusals of partitions that do not exist."""
    topics = []
    refusals = []
    for named in request.topics:
        topic = image.topics.get(named.name)
        if topic is None:
            refusals.append(_refused_topic(named.name, named.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        known, unknown = split_by_existence(topic, named.partitions)
        if unknown:
            refusals.append(_refused_topic(named.name, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if known:
            topics.append(TxnOffsetCommitRequestTopic(name=named.name, partitions=known))
    return replace(request, topics=tuple(topics)), tuple(refusals)


def _refused(request: TxnOffsetCommitRequest, code: ErrorCode, version: int) -> TxnOffsetCommitResponse:
    """The oldest clients know no coordinator that is loading."""
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < FIRST_WITH_LOAD_IN_PROGRESS:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return TxnOffsetCommitResponse(
        topics=tuple(_refused_topic(topic.name, topic.partitions, code) for topic in request.topics)
    )


def _refused_topic(
    name: str, partitions: tuple[TxnOffsetCommitRequestPartition, ...], code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=name,
        partitions=tuple(
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in partitions
        ),
    )


def _join(refusals: tuple[TxnOffsetCommitResponseTopic, ...], response: Message) -> TxnOffsetCommitResponse:
    """One answer of both, in which every topic is once."""
    assert isinstance(response, TxnOffsetCommitResponse)
    if not refusals:
        return response
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for topic in (*refusals, *response.topics):
        before = topics[topic.name].partitions if topic.name in topics else ()
        topics[topic.name] = replace(topic, partitions=before + topic.partitions)
    return TxnOffsetCommitResponse(topics=tuple(topics.values()))
