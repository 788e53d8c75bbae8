"""Requests to transaction coordinators: those of transactional and preparing producers, and queries.

Every request here may be sent again if its response is lost: a new producer gets one more epoch, preparing a
transaction is idempotent, and a repeated end gets the same response (transactions v2), or finds the transaction already
ended (older versions). So all of them are retried while coordinators load, move or are unavailable, until the client's
timeout.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.cluster_core import refuse
from kaspar.client.coordinators import MOVING, CoordinatorKind, find_coordinators, request_coordinator
from kaspar.client.core import API_VERSIONS_REQUEST
from kaspar.client.steps import Address, AnyResponse, error_code_of
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages import describe_transactions
from kaspar.protocol.messages import list_transactions as listing
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kaspar.protocol.messages.api_versions import ApiVersionsResponse
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.schema import Message

_NO_PRODUCER = ProducerIdAndEpoch(-1, -1)
_BUSY = MOVING | {ErrorCode.CONCURRENT_TRANSACTIONS}
_BACKOFF_S = 0.02
_LAST_CLIENT_VERSION = 3  # the last version of AddPartitionsToTxn for clients: later ones are for brokers
_PREPARES = 6  # the first version of InitProducerId that can keep a transaction (KIP-939)
_END_TXN = {True: 5, False: 4}  # the version of EndTxn: with transactions v2, or before
_BROKER_RESOURCE = 4
_LEVEL = "transaction.version"
TRANSACTIONS_V2 = 2
NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a prepared transaction in DescribeTransactions."""
ANY_AGE = -1


class InitializedProducer(NamedTuple):
    producer: ProducerIdAndEpoch
    ongoing: ProducerIdAndEpoch | None
    """The producer of the records in the transaction that was kept; None if no transaction was open."""


class TransactionSupport(NamedTuple):
    """What the brokers of the cluster support."""

    version: int
    """The finalised level of `transaction.version`. 2 is KIP-890: leaders add partitions, and each end raises the
    epoch.
    """
    prepares: bool
    """Whether a transaction can be prepared: every broker serves InitProducerId 6 and allows two-phase commit."""


class Ending(NamedTuple):
    """A transaction to end, and the producer that may end it."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    committed: bool


class DescribedTransaction(NamedTuple):
    transactional_id: str
    state: str
    """Kafka's name: Empty, Ongoing, PrepareCommit ..."""
    timeout_ms: int
    start_ms: int
    producer: ProducerIdAndEpoch
    partitions: tuple[TopicPartition, ...]


class ListedTransaction(NamedTuple):
    transactional_id: str
    state: str


# --- what the cluster supports ----------------------------------------------------------------------------------------


def transaction_support(client: Client) -> TransactionSupport:
    responses = _request_all_brokers(client, lambda _: API_VERSIONS_REQUEST, ApiVersionsResponse).values()
    levels = [
        each.max_version_level for response in responses for each in response.finalized_features if each.name == _LEVEL
    ]
    announces_it = all(
        any(each.api_key == ApiKey.INIT_PRODUCER_ID and each.max_version >= _PREPARES for each in response.api_keys)
        for response in responses
    )
    return TransactionSupport(min(levels, default=0), announces_it and _allows_two_phase_commit(client))


def _allows_two_phase_commit(client: Client) -> bool:
    """Whether all brokers allow prepared transactions. A broker may support them but not allow them."""
    try:
        values = _broker_settings(client, "transaction.two.phase.commit.enable")
    except Refused as refused:
        if refused.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return True  # without permission to read settings, the client finds out when it prepares a transaction
    return bool(values) and all(value == "true" for value in values)


def max_timeout_ms(client: Client) -> int:
    """The smallest `transaction.max.timeout.ms` of the brokers."""
    limits = _broker_settings(client, "transaction.max.timeout.ms")
    if not limits:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "no broker reports its transaction.max.timeout.ms")
    return min(int(limit) for limit in limits)


def _broker_settings(client: Client, name: str) -> list[str]:
    """The values of a setting on all brokers that have it."""

    def request_to(broker_id: int) -> DescribeConfigsRequest:
        asked = DescribeConfigsResource(
            resource_type=_BROKER_RESOURCE, resource_name=str(broker_id), configuration_keys=(name,)
        )
        return DescribeConfigsRequest(resources=(asked,))

    values = []
    for broker_id, response in _request_all_brokers(client, request_to, DescribeConfigsResponse).items():
        found = response.results[0]
        refuse(found.error_code, found.error_message or f"reading {name} of broker {broker_id}")
        values += [each.value for each in found.configs if each.value is not None]
    return values


# --- a producer's requests --------------------------------------------------------------------------------------------


def init_producer_id(
    client: Client,
    transactional_id: str | None,
    *,
    timeout_ms: int = 60_000,
    enable_2pc: bool = False,
    keep_prepared: bool = False,
    producer: ProducerIdAndEpoch | None = None,
) -> InitializedProducer:
    """Get a producer's id and epoch. Fences the previous producer of the transactional id and aborts its transaction.

    `enable_2pc` and `keep_prepared`, with the producer of an open transaction, prepare that transaction: then only the
    new producer can end it, and it has no timeout.
    """
    named = producer or _NO_PRODUCER
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=named.producer_id,
        producer_epoch=named.producer_epoch,
        enable_2pc=enable_2pc,
        keep_prepared_txn=keep_prepared,
    )
    version = _PREPARES if enable_2pc or keep_prepared else None
    if transactional_id is None:
        response = _retry(client, lambda: client.request(request, InitProducerIdResponse))
    else:
        response = client.run(
            request_coordinator(
                client.core,
                CoordinatorKind.TRANSACTION,
                transactional_id,
                request,
                InitProducerIdResponse,
                version,
                retry_on=_BUSY,
                resend=True,
            )
        )
    refuse(response.error_code, f"InitProducerId for {transactional_id}" if transactional_id else "InitProducerId")
    ongoing = ProducerIdAndEpoch(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
    return InitializedProducer(
        ProducerIdAndEpoch(response.producer_id, response.producer_epoch), None if ongoing == _NO_PRODUCER else ongoing
    )


def add_partitions(
    client: Client, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
) -> None:
    """Add partitions to the transaction before they are written to, as required before transactions v2."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(added)) for topic, added in topics.items()
        ),
    )
    response = client.run(
        request_coordinator(
            client.core,
            CoordinatorKind.TRANSACTION,
            transactional_id,
            request,
            AddPartitionsToTxnResponse,
            _LAST_CLIENT_VERSION,
            code_of=_first_code,
            retry_on=_BUSY,
            resend=True,
        )
    )
    refuse(_first_code(response), f"adding partitions to the transaction of {transactional_id}")


def _first_code(response: AddPartitionsToTxnResponse) -> int:
    """The first error code of the response. An error of the transaction is repeated for each partition. If one
    partition is refused, the others have OPERATION_NOT_ATTEMPTED.
    """
    codes = [
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
        if each.partition_error_code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)
    ]
    return codes[0] if codes else ErrorCode.NONE


# --- ends -------------------------------------------------------------------------------------------------------------


def end(client: Client, ending: Ending, *, version: int) -> None:
    """End a transaction. `version` is the transaction.version. Raises Refused if the transaction cannot be ended so."""
    (code,) = end_all(client, [ending], version=version)
    refuse(code, f"ending the transaction of {ending.transactional_id}")


def end_and_continue(client: Client, ending: Ending, *, version: int) -> ProducerIdAndEpoch:
    """End a transaction, and return the producer for the next transaction of the same id. Raises Refused."""
    if version < TRANSACTIONS_V2:
        end(client, ending, version=version)
        return init_producer_id(client, ending.transactional_id).producer  # a new epoch, so that sequences restart at 0
    response = client.run(
        request_coordinator(
            client.core,
            CoordinatorKind.TRANSACTION,
            ending.transactional_id,
            _end_request(ending),
            EndTxnResponse,
            _END_TXN[True],
            retry_on=_BUSY,
            resend=True,
        )
    )
    refuse(response.error_code, f"ending the transaction of {ending.transactional_id}")
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


def end_all(
    client: Client, endings: Sequence[Ending], *, version: int, timeout_s: float | None = None
) -> list[ErrorCode]:
    """End transactions and return their final error codes. Requests to the same coordinator are pipelined.

    Raises Refused or OSError if one of them has no final response within the timeout, by default the client's; others
    may have been ended. A timeout of 0 means one attempt.
    """
    api_version = _END_TXN[version >= TRANSACTIONS_V2]
    codes: dict[int, ErrorCode] = {}

    def ask(place: Address, indexes: list[int]) -> None:
        requests = [_end_request(endings[index]) for index in indexes]
        responses = client.request_all_at(place, requests, EndTxnResponse, api_version)
        for index, response in zip(indexes, responses, strict=True):
            if response.error_code not in _BUSY:
                codes[index] = ErrorCode(response.error_code)
            elif response.error_code in MOVING:
                _forget(client, endings[index].transactional_id)

    _until_all_responded(client, [ending.transactional_id for ending in endings], codes, ask, timeout_s=timeout_s)
    return [codes[index] for index in range(len(endings))]


def _until_all_responded(
    client: Client,
    transactional_ids: Sequence[str],
    responded: Mapping[int, object],
    ask: Callable[[Address, list[int]], None],
    *,
    timeout_s: float | None = None,
) -> None:
    """Call `ask` for each coordinator with the indexes of its ids, until all indexes are in `responded`."""
    deadline = time.monotonic() + (client.timeout_s if timeout_s is None else timeout_s)
    while left := [index for index in range(len(transactional_ids)) if index not in responded]:
        failure: Exception = Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "transactions are still being ended")
        try:
            places = client.run(
                find_coordinators(
                    client.core, CoordinatorKind.TRANSACTION, [transactional_ids[index] for index in left]
                )
            )
            by_place: dict[Address, list[int]] = defaultdict(list)
            for index in left:
                by_place[places[transactional_ids[index]]].append(index)
            for place, indexes in by_place.items():
                ask(place, indexes)
        except (OSError, Refused) as error:
            if isinstance(error, Refused) and error.code not in MOVING:
                raise
            for index in left:
                _forget(client, transactional_ids[index])
            failure = error
        if len(responded) < len(transactional_ids):
            if time.monotonic() > deadline:
                raise failure
            time.sleep(_BACKOFF_S)


def _forget(client: Client, transactional_id: str) -> None:
    client.core.forget_coordinator(CoordinatorKind.TRANSACTION, transactional_id)


def _end_request(ending: Ending) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=ending.transactional_id,
        producer_id=ending.producer.producer_id,
        producer_epoch=ending.producer.producer_epoch,
        committed=ending.committed,
    )


# --- queries ----------------------------------------------------------------------------------------------------------


def describe(client: Client, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
    """Describe transactions, with one request per coordinator. Unknown ids are omitted."""
    asked = list(dict.fromkeys(transactional_ids))
    responded: dict[int, describe_transactions.TransactionState] = {}

    def ask(place: Address, indexes: list[int]) -> None:
        request = describe_transactions.DescribeTransactionsRequest(
            transactional_ids=tuple(asked[index] for index in indexes)
        )
        response = client.request_at(place, request, describe_transactions.DescribeTransactionsResponse)
        states = {state.transactional_id: state for state in response.transaction_states}
        for index in indexes:
            state = states[asked[index]]
            if state.error_code in MOVING:
                _forget(client, asked[index])
            else:
                responded[index] = state

    _until_all_responded(client, asked, responded, ask)
    return {
        state.transactional_id: _described(state)
        for state in responded.values()
        if state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    }


def _described(state: describe_transactions.TransactionState) -> DescribedTransaction:
    refuse(state.error_code, f"describing the transaction of {state.transactional_id}")
    return DescribedTransaction(
        state.transactional_id,
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms,
        ProducerIdAndEpoch(state.producer_id, state.producer_epoch),
        tuple(TopicPartition(each.topic, number) for each in state.topics for number in each.partitions),
    )


def list_transactions(
    client: Client, *, prefix: str, states: tuple[str, ...] = (), older_than_ms: int = ANY_AGE
) -> list[ListedTransaction]:
    """The transactions of all brokers whose ids have this prefix; no `states` (Kafka's names) means any state.
    Coordinators measure the age with their own clocks; brokers before 3.8 list transactions of any age.
    """
    request = listing.ListTransactionsRequest(
        state_filters=states, duration_filter=older_than_ms, transactional_id_pattern=_pattern_of(prefix) + ".*"
    )
    listed = []
    responses = _request_all_brokers(client, lambda _: request, listing.ListTransactionsResponse)
    for broker_id, response in responses.items():
        refuse(response.error_code, f"listing the transactions of broker {broker_id}")
        listed += [
            ListedTransaction(each.transactional_id, each.transaction_state)
            for each in response.transaction_states
            if each.transactional_id.startswith(prefix)  # brokers before 4.1 ignore the pattern
        ]
    return listed


def _request_all_brokers(
    client: Client, request_to: Callable[[int], Message], response_class: type[AnyResponse]
) -> dict[int, AnyResponse]:
    """The responses of all brokers. If one leaves meanwhile, all others get the request again, because they have taken
    over its work.
    """
    deadline = time.monotonic() + client.timeout_s
    responses: dict[int, AnyResponse] = {}
    while left := [broker_id for broker_id in client.broker_ids() if broker_id not in responses]:
        ask = partial(client.request_broker, left[0], request_to(left[0]), response_class)
        try:
            responses[left[0]] = _retry(client, ask)
        except Refused as refused:
            if refused.code is not ErrorCode.BROKER_NOT_AVAILABLE or time.monotonic() > deadline:
                raise
            responses.clear()
    return responses


def _retry(client: Client, ask: Callable[[], AnyResponse]) -> AnyResponse:
    """The first final response. Lost connections and retriable errors are retried."""
    deadline = time.monotonic() + client.timeout_s
    while True:
        try:
            response = ask()
            if error_code_of(response) not in RETRIABLE or time.monotonic() > deadline:
                return response
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_BACKOFF_S)


def _pattern_of(text: str) -> str:
    """A regular expression for the text that means the same in Python and RE2."""
    return "".join(each if each.isalnum() or each in "-_:%" else f"[{each}]" for each in text)
