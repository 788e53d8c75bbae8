"""TxnOffsetCommit: commits offsets for a group within a producer's transaction.

The group's partition of `__consumer_offsets` must belong to that transaction, so that its marker reaches the offsets.
The transaction's coordinator verifies that; for clients of transactions v2 it adds the partition.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.coordination.active_shard import coordinator_code
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers.known_partitions import split_by_existence
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.verification import TransactionSupportedOperation
from kaspar.groups.offsets.commits import TransactionalCommit
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kaspar.protocol.schema import Message
from kaspar.replication.partition import Partition

FIRST_WITH_LOAD_IN_PROGRESS: Final = 2
NO_SEQUENCE: Final = -1


class VerifyTransaction(Protocol):
    """Checks whether a producer may write to these partitions, with these sequences, in its transaction. Returns the
    errors of the partitions that it may not write to.
    """

    def __call__(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        base_sequences: Mapping[Partition, int],
        support: TransactionSupportedOperation,
    ) -> Awaitable[Mapping[Partition, ErrorCode]]: ...


class TxnOffsetCommitHandler:
    def __init__(
        self, groups: GroupRuntime, images: ImageSource, partitions: Partitions, verify: VerifyTransaction
    ) -> None:
        self._groups = groups
        self._images = images
        self._partitions = partitions
        self._verify_transaction = verify

    def __call__(self, context: RequestContext, request: TxnOffsetCommitRequest) -> HandlerResult:
        known, refusals = _split(self._images.current, request)
        if not known.topics:
            return TxnOffsetCommitResponse(topics=refusals)
        if not known.group_id:
            return _join(refusals, _refused(known, ErrorCode.INVALID_GROUP_ID, context.version))
        return self._commit(context, known, refusals)

    async def _commit(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        refusals: tuple[TxnOffsetCommitResponseTopic, ...],
    ) -> TxnOffsetCommitResponse:
        code = await self._verify(context.version, request)
        if code is not ErrorCode.NONE:
            return _join(refusals, _refused(request, coordinator_code(code), context.version))
        commit = TransactionalCommit(request, context.version)
        response = self._groups.submit(
            request.group_id,
            lambda shard, now: shard.commit_in_transaction(commit, now),
            lambda code: _refused(request, code, context.version),
        )
        return _join(refusals, response if isinstance(response, Message) else await response)

    async def _verify(self, version: int, request: TxnOffsetCommitRequest) -> ErrorCode:
        """The reason why the group's offsets cannot be part of the transaction, or NONE."""
        index = self._groups.partition_of(request.group_id)
        try:
            self._groups.check_active(index)
            partition = self._partitions.lead(self._groups.topic.name, index)
        except Refused as refusal:
            return refusal.code
        refused = await self._verify_transaction(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            {partition: NO_SEQUENCE},
            TransactionSupportedOperation.of_txn_offset_commit(version),
        )
        return refused.get(partition, ErrorCode.NONE)


def _split(
    image: ClusterImage, request: TxnOffsetCommitRequest
) -> tuple[TxnOffsetCommitRequest, tuple[TxnOffsetCommitResponseTopic, ...]]:
    """The part of the request that may be committed, and the refusals of partitions that do not exist."""
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
    """The response with an error for every partition. The oldest clients do not know COORDINATOR_LOAD_IN_PROGRESS."""
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
    """Combine refusals and response into one response, in which every topic occurs once."""
    assert isinstance(response, TxnOffsetCommitResponse)
    if not refusals:
        return response
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for topic in (*refusals, *response.topics):
        before = topics[topic.name].partitions if topic.name in topics else ()
        topics[topic.name] = replace(topic, partitions=before + topic.partitions)
    return TxnOffsetCommitResponse(topics=tuple(topics.values()))
