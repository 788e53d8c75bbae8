"""Guards of the APIs of producers, transactions and coordinators."""

from dataclasses import dataclass, replace
from typing import Any, Final

from kaspar.acls.acl import CLUSTER_NAME, AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.guards import (
    MESSAGES,
    Call,
    Guard,
    Need,
    Whole,
    denied_names,
    filtered,
    need,
    then,
    with_elements,
)
from kaspar.metadata.topic_names import is_internal
from kaspar.network.api import HandlerResult, RequestContext, Response
from kaspar.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kaspar.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kaspar.protocol.messages.end_txn import EndTxnResponse
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest
from kaspar.protocol.messages.list_transactions import TransactionState as ListedTransaction
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kaspar.protocol.schema import Message
from kaspar.transactions.listing import undescribed

_FIRST_WITH_SEVERAL_KEYS: Final = 4
_FIRST_OF_BROKERS: Final = 4
_FIRST_WITH_SHARE_GROUPS: Final = 6

WRITE_AS: Final = need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_ID: Final = need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
READ_GROUP: Final = need(AclOperation.READ, ResourceType.GROUP)


def _transactional_id(request: Any) -> str:
    transactional_id: str = request.transactional_id
    return transactional_id


def _end_txn(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return EndTxnResponse(error_code=code)


END_TXN: Final[Guard] = Whole(WRITE_AS, _end_txn, _transactional_id)


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """Without a transactional id, WRITE on any topic is enough, which a producer needs anyway (KIP-679). Transactions
    without a timeout need TWO_PHASE_COMMIT (KIP-939).
    """

    needs: tuple[Need, ...] = (
        replace(WRITE_AS, of="with a transactional id"),
        Need(
            AclOperation.TWO_PHASE_COMMIT,
            ResourceType.TRANSACTIONAL_ID,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            of="with enable2Pc",
        ),
        Need(
            AclOperation.IDEMPOTENT_WRITE,
            ResourceType.CLUSTER,
            "WRITE on at least one topic is required",
            of="without a transactional id",
        ),
        Need(
            AclOperation.WRITE,
            ResourceType.TOPIC,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            of="any topic, without a transactional id",
        ),
    )

    def __call__(self, call: Call, request: InitProducerIdRequest) -> HandlerResult:
        write_as, two_phase_commit, idempotent_write, write_topic = self.needs
        caller, transactional_id = call.caller, request.transactional_id
        if transactional_id is None:
            if caller.is_authorized_on_cluster(idempotent_write.operation, quietly=True) or caller.is_authorized_on_any(
                write_topic.operation, write_topic.resource_type
            ):
                return call.proceed(request)
            idempotent_write.is_authorized(caller)  # for the audit log
            return _not_initialized(write_topic.code)
        if not write_as.is_authorized(caller, transactional_id):
            return _not_initialized(write_as.code)
        if request.enable_2pc and not two_phase_commit.is_authorized(caller, transactional_id):
            return _not_initialized(two_phase_commit.code)
        return call.proceed(request)


def _not_initialized(code: ErrorCode) -> Message:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxn:
    """If one partition is refused, none is added. From version 4 on only brokers send the request, on behalf of
    producers that they have checked.
    """

    needs: tuple[Need, ...] = (
        replace(WRITE_AS, of="versions 0 to 3"),
        need(AclOperation.WRITE, ResourceType.TOPIC, of="versions 0 to 3"),
        need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, of="from version 4 on"),
    )

    def __call__(self, call: Call, request: AddPartitionsToTxnRequest) -> HandlerResult:
        write_as, on_topic, on_cluster = self.needs
        if call.context.version >= _FIRST_OF_BROKERS:
            if on_cluster.is_authorized(call.caller):
                return call.proceed(request)
            return AddPartitionsToTxnResponse(error_code=on_cluster.code)
        topics = request.v3_and_below_topics
        if not write_as.is_authorized(call.caller, request.v3_and_below_transactional_id):
            return _not_added(request, lambda topic, index: write_as.code)
        denied = denied_names(call.caller, on_topic, (each.name for each in topics if not is_internal(each.name)))
        denied |= {each.name for each in topics if is_internal(each.name)}
        if not denied:
            return call.proceed(request)
        image = call.images.current

        def code_of(topic: str, index: int) -> ErrorCode:
            if topic in denied:
                return on_topic.code
            found = image.topics.get(topic)
            if found is None or not 0 <= index < len(found.partitions):
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.OPERATION_NOT_ATTEMPTED

        return _not_added(request, code_of)


def _not_added(request: AddPartitionsToTxnRequest, code_of: Any) -> Message:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code_of(topic.name, index)
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
    )


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxn:
    needs: tuple[Need, ...] = (WRITE_AS, READ_GROUP)

    def __call__(self, call: Call, request: AddOffsetsToTxnRequest) -> HandlerResult:
        write_as, on_group = self.needs
        if not write_as.is_authorized(call.caller, request.transactional_id):
            return AddOffsetsToTxnResponse(error_code=write_as.code)
        if not on_group.is_authorized(call.caller, request.group_id):
            return AddOffsetsToTxnResponse(error_code=on_group.code)
        return call.proceed(request)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommit:
    needs: tuple[Need, ...] = (WRITE_AS, READ_GROUP, need(AclOperation.READ, ResourceType.TOPIC))

    def __call__(self, call: Call, request: TxnOffsetCommitRequest) -> HandlerResult:
        write_as, on_group, on_topic = self.needs
        if not write_as.is_authorized(call.caller, request.transactional_id):
            return _uncommitted(request, write_as.code)
        if not on_group.is_authorized(call.caller, request.group_id):
            return _uncommitted(request, on_group.code)
        denied = denied_names(call.caller, on_topic, (each.name for each in request.topics))
        if not denied:
            return call.proceed(request)
        refused = tuple(_uncommitted_topic(each, on_topic.code) for each in request.topics if each.name in denied)
        allowed = tuple(each for each in request.topics if each.name not in denied)
        if not allowed:
            return TxnOffsetCommitResponse(topics=refused)
        return then(
            call.proceed(replace(request, topics=allowed)),
            lambda response: with_elements(response, "topics", refused, call.context.version, first=True),
        )


def _uncommitted(request: TxnOffsetCommitRequest, code: ErrorCode) -> Message:
    return TxnOffsetCommitResponse(topics=tuple(_uncommitted_topic(each, code) for each in request.topics))


def _uncommitted_topic(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=tuple(
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ),
    )


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    """The topics of a transaction that the client may not describe are omitted."""

    needs: tuple[Need, ...] = (
        DESCRIBE_ID,
        Need(AclOperation.DESCRIBE, ResourceType.TOPIC, "the topic is omitted", of="topics of the transaction"),
    )

    def __call__(self, call: Call, request: DescribeTransactionsRequest) -> HandlerResult:
        on_id, on_topic = self.needs
        denied = denied_names(call.caller, on_id, request.transactional_ids)
        allowed = tuple(each for each in request.transactional_ids if each not in denied)

        def merged(response: Response) -> Response:
            assert isinstance(response, DescribeTransactionsResponse)
            described = iter(response.transaction_states)
            states = (
                undescribed(each, on_id.code) if each in denied else next(described)
                for each in request.transactional_ids
            )
            return DescribeTransactionsResponse(
                transaction_states=tuple(
                    replace(
                        state,
                        topics=tuple(each for each in state.topics if on_topic.is_authorized(call.caller, each.topic)),
                    )
                    for state in states
                )
            )

        if not allowed:
            return merged(DescribeTransactionsResponse(transaction_states=()))
        return then(call.proceed(replace(request, transactional_ids=allowed)), merged)


@dataclass(frozen=True, slots=True)
class ListTransactions:
    needs: tuple[Need, ...] = (
        Need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "the transaction is omitted"),
    )

    def __call__(self, call: Call, request: ListTransactionsRequest) -> HandlerResult:
        (on_id,) = self.needs
        return filtered(
            call.proceed(request),
            "transaction_states",
            ListedTransaction,
            lambda transaction: on_id.is_authorized(call.caller, transaction.transactional_id),
            call.context.version,
        )


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    needs: tuple[Need, ...] = (
        need(AclOperation.DESCRIBE, ResourceType.GROUP, of="groups"),
        replace(DESCRIBE_ID, of="transactional ids"),
        need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, of="share groups"),
    )

    def __call__(self, call: Call, request: FindCoordinatorRequest) -> HandlerResult:
        several = call.context.version >= _FIRST_WITH_SEVERAL_KEYS
        keys = request.coordinator_keys if several else (request.key,)
        needed = self._need_of(call.context, request)
        if needed is None:
            return call.proceed(request)
        denied = {key for key in dict.fromkeys(keys) if not needed.is_authorized(call.caller, _resource(needed, key))}
        if not denied:
            return call.proceed(request)
        message = MESSAGES[needed.code]
        if not several:
            return FindCoordinatorResponse(error_code=needed.code, error_message=message, node_id=-1, host="", port=-1)

        def merged(response: Response) -> Response:
            assert isinstance(response, FindCoordinatorResponse)
            found = iter(response.coordinators)
            return FindCoordinatorResponse(
                coordinators=tuple(
                    Coordinator(key=key, node_id=-1, host="", port=-1, error_code=needed.code, error_message=message)
                    if key in denied
                    else next(found)
                    for key in keys
                )
            )

        allowed = tuple(key for key in keys if key not in denied)
        if not allowed:
            return merged(FindCoordinatorResponse(coordinators=()))
        return then(call.proceed(replace(request, coordinator_keys=allowed)), merged)

    def _need_of(self, context: RequestContext, request: FindCoordinatorRequest) -> Need | None:
        """The permission that the request needs; None if the handler refuses the request."""
        on_group, on_id, on_cluster = self.needs
        match request.key_type:
            case 0:
                return on_group
            case 1:
                return on_id
            case 2 if context.version >= _FIRST_WITH_SHARE_GROUPS:
                return on_cluster
        return None


def _resource(needed: Need, key: str) -> str:
    return CLUSTER_NAME if needed.resource_type is ResourceType.CLUSTER else key


INIT_PRODUCER_ID: Final[Guard] = InitProducerId()
ADD_PARTITIONS_TO_TXN: Final[Guard] = AddPartitionsToTxn()
ADD_OFFSETS_TO_TXN: Final[Guard] = AddOffsetsToTxn()
TXN_OFFSET_COMMIT: Final[Guard] = TxnOffsetCommit()
DESCRIBE_TRANSACTIONS: Final[Guard] = DescribeTransactions()
LIST_TRANSACTIONS: Final[Guard] = ListTransactions()
FIND_COORDINATOR: Final[Guard] = FindCoordinator()
