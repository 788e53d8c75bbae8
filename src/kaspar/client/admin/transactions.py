"""Lists, describes and aborts transactions (KIP-664)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.admin.cluster import broker_ids
from kaspar.client.admin.coordinators import CoordinatorNode, ask_coordinators
from kaspar.client.admin.producers import ProducerState
from kaspar.client.admin.session import Admin, accepted, refusal, refuse
from kaspar.client.coordinators import MOVING, CoordinatorKind
from kaspar.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

FIRST_COORDINATOR_EPOCH = 0
"""The coordinator epoch for a producer whose first transaction hangs: it has none yet, and 0 is not higher than the
epoch of any coordinator.
"""
_NO_TIME = -1
_ABORTING = MOVING | {ErrorCode.CONCURRENT_TRANSACTIONS}
"""The coordinator is moving, or the abort of the open transaction is not complete yet."""


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str
    """Kafka's name: Ongoing, PrepareCommit, CompleteAbort ..."""


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    transactional_id: str
    coordinator_id: int
    state: str
    producer: ProducerIdAndEpoch
    timeout_ms: int
    start_time_ms: int | None
    """None if no transaction is open."""
    partitions: tuple[TopicPartition, ...]
    """The partitions that the transaction has written to and that have no end marker yet."""


@dataclass(frozen=True, slots=True)
class AbortTransactionSpec:
    """A transaction on one partition, identified by its producer."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    @classmethod
    def of(cls, partition: TopicPartition, producer: ProducerState) -> "AbortTransactionSpec":
        """The open transaction of this producer on the partition."""
        epoch = FIRST_COORDINATOR_EPOCH if producer.coordinator_epoch is None else producer.coordinator_epoch
        return cls(partition, producer.producer_id, producer.producer_epoch, epoch)


def list_transactions(
    admin: Admin,
    *,
    producer_ids: Collection[int] = (),
    duration_filter_ms: int = -1,
    transactional_id_pattern: str | None = None,
) -> list[TransactionListing]:
    """The transactions of all coordinators, filtered by producers, by the time for which they have been open (unless
    negative), and by a pattern for their ids (in RE2's syntax). Raises Refused."""
    request = ListTransactionsRequest(
        producer_id_filters=tuple(producer_ids),
        duration_filter=duration_filter_ms,
        transactional_id_pattern=transactional_id_pattern,
    )
    call = "listTransactions"
    listed = []
    for broker_id in broker_ids(admin, f"{call}(api=METADATA)"):
        response = admin.ask_broker(call, broker_id, request, ListTransactionsResponse)
        if (refused := refusal(response.error_code)) is not None:
            raise Refused(
                refused.code, f"ListTransactions request sent to broker {broker_id} failed with an unexpected exception"
            )
        listed += [
            TransactionListing(each.transactional_id, broker_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ]
    return listed


def describe_transactions(
    admin: Admin, transactional_ids: Collection[str]
) -> dict[str, TransactionDescription | Refused]:
    """Describe transactions. An id that no producer has used is refused with TRANSACTIONAL_ID_NOT_FOUND."""

    def ask(node: CoordinatorNode, together: Sequence[str]) -> dict[str, TransactionDescription | Refused]:
        request = DescribeTransactionsRequest(transactional_ids=tuple(together))
        response = admin.client.request_at(node.address, request, DescribeTransactionsResponse)
        return {
            each.transactional_id: refusal(each.error_code, _why(each)) or _described(node.broker_id, each)
            for each in response.transaction_states
        }

    return ask_coordinators(admin, "describeTransactions", CoordinatorKind.TRANSACTION, transactional_ids, ask)


def _why(state: TransactionState) -> str | None:
    if state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    request = f"DescribeTransactions request for transactionalId `{state.transactional_id}`"
    return f"{request} failed because the ID could not be found"


def _described(coordinator_id: int, state: TransactionState) -> TransactionDescription:
    start = state.transaction_start_time_ms
    return TransactionDescription(
        state.transactional_id,
        coordinator_id,
        state.transaction_state,
        ProducerIdAndEpoch(state.producer_id, state.producer_epoch),
        state.transaction_timeout_ms,
        None if start == _NO_TIME else start,
        tuple(TopicPartition(topic.topic, number) for topic in state.topics for number in topic.partitions),
    )


def abort_transaction(admin: Admin, spec: AbortTransactionSpec) -> None:
    """Write an abort marker to a partition, for a transaction that its coordinator has forgotten. Raises Refused."""
    topic = WritableTxnMarkerTopic(name=spec.partition.topic, partition_indexes=(spec.partition.partition,))
    marker = WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        transaction_result=False,
        topics=(topic,),
        coordinator_epoch=spec.coordinator_epoch,
    )
    request = WriteTxnMarkersRequest(markers=(marker,))
    response = admin.retry(
        "abortTransaction(api=METADATA)",
        lambda: admin.client.request_leader(spec.partition, request, WriteTxnMarkersResponse, code_of=_marker_code),
        _marker_code,
    )
    refuse(_marker_code(response))


def _marker_code(response: WriteTxnMarkersResponse) -> int:
    return response.markers[0].topics[0].partitions[0].error_code


def fence_producer(admin: Admin, transactional_id: str) -> ProducerIdAndEpoch:
    """Raise the epoch of a transactional id: its producer is fenced, and its open transaction is aborted (KIP-1152).
    Raises Refused."""

    def ask(node: CoordinatorNode, together: Sequence[str]) -> dict[str, InitProducerIdResponse | Refused]:
        timeout_ms = int(admin.client.timeout_s * 1000)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        response = admin.client.request_at(node.address, request, InitProducerIdResponse)
        return dict.fromkeys(together, refusal(response.error_code) or response)

    results = ask_coordinators(
        admin, "fenceProducer", CoordinatorKind.TRANSACTION, [transactional_id], ask, retry_on=_ABORTING
    )
    found = accepted(results[transactional_id])
    return ProducerIdAndEpoch(found.producer_id, found.producer_epoch)
