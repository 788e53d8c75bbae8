"""What a transactional or a preparing producer asks of its coordinator, and what people and drivers ask about it.

Every question here may be put again when its answer was lost: a new producer takes one more epoch, a transaction is
prepared once however often that is asked, and an end that is repeated is answered as it was (transactions v2), or finds
the transaction ended so (the older rules). So all of them wait for coordinators that load, move or are away, up to the
client's timeout.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.cluster import AnyAnswer, Client
from kaspar.client.coordinators import MOVING, CoordinatorKind, at_coordinator, code_of_answer, find_coordinators
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages import describe_transactions
from kaspar.protocol.messages import list_transactions as listing
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
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
_FROM_CLIENTS = 3  # of AddPartitionsToTxn: later versions are for brokers
_PREPARES = 6  # of InitProducerId: the first version that keeps a transaction (KIP-939)
_END_TXN = {True: 5, False: 4}  # by transactions v2 or the older rules
_BROKER_RESOURCE = 4
_LEVEL = "transaction.version"
TRANSACTIONS_V2 = 2
NO_TIMEOUT_MS = 2**31 - 1
"""What DescribeTransactions says of a transaction that waits for its owner's decision."""
ANY_AGE = -1


class InitializedProducer(NamedTuple):
    producer: ProducerIdAndEpoch
    ongoing: ProducerIdAndEpoch | None
    """The pair that the records of the transaction carry which was kept; None if none was open."""


class TransactionSupport(NamedTuple):
    """What the cluster's brokers say of themselves."""

    version: int
    """The finalised level of `transaction.version`. 2 is KIP-890: leaders add partitions, an end raises the epoch."""
    prepares: bool
    """Whether a transaction can be prepared: every broker announces InitProducerId 6, and allows what it is for."""


class Ending(NamedTuple):
    """A transaction to end, by the pair that may do so."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    committed: bool


class DescribedTransaction(NamedTuple):
    transactional_id: str
    state: str
    """Kafka's name of it: Empty, Ongoing, PrepareCommit ..."""
    timeout_ms: int
    start_ms: int
    producer: ProducerIdAndEpoch
    partitions: tuple[TopicPartition, ...]


class ListedTransaction(NamedTuple):
    transactional_id: str
    state: str


# --- what the cluster can do ------------------------------------------------------------------------------------------


def transaction_support(client: Client) -> TransactionSupport:
    request = ApiVersionsRequest(client_software_name="kaspar", client_software_version="1")
    answers = _of_every_broker(client, lambda _: request, ApiVersionsResponse).values()
    levels = [each.max_version_level for answer in answers for each in answer.finalized_features if each.name == _LEVEL]
    announces_it = all(
        any(each.api_key == ApiKey.INIT_PRODUCER_ID and each.max_version >= _PREPARES for each in answer.api_keys)
        for answer in answers
    )
    return TransactionSupport(min(levels, default=0), announces_it and _allows_two_phase_commit(client))


def _allows_two_phase_commit(client: Client) -> bool:
    """A broker may know prepared transactions, and not allow them."""
    try:
        values = _broker_settings(client, "transaction.two.phase.commit.enable")
    except Refused as refused:
        if refused.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return True  # a client that may not read settings finds out when it prepares
    return bool(values) and all(value == "true" for value in values)


def max_timeout_ms(client: Client) -> int:
    """`transaction.max.timeout.ms`: the smallest of the brokers that are there."""
    limits = _broker_settings(client, "transaction.max.timeout.ms")
    if not limits:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "no broker tells its transaction.max.timeout.ms")
    return min(int(limit) for limit in limits)


def _broker_settings(client: Client, name: str) -> list[str]:
    """The value that each broker has; those that do not know the setting are left out."""

    def request_to(broker_id: int) -> DescribeConfigsRequest:
        asked = DescribeConfigsResource(
            resource_type=_BROKER_RESOURCE, resource_name=str(broker_id), configuration_keys=(name,)
        )
        return DescribeConfigsRequest(resources=(asked,))

    values = []
    for broker_id, answer in _of_every_broker(client, request_to, DescribeConfigsResponse).items():
        found = answer.results[0]
        _refuse(found.error_code, found.error_message or f"reading {name} of broker {broker_id}")
        values += [each.value for each in found.configs if each.value is not None]
    return values


# --- a producer's questions -------------------------------------------------------------------------------------------


def init_producer_id(
    client: Client,
    transactional_id: str | None,
    *,
    timeout_ms: int = 60_000,
    enable_2pc: bool = False,
    keep_prepared: bool = False,
    producer: ProducerIdAndEpoch | None = None,
) -> InitializedProducer:
    """A producer's id and epoch. Whoever had the transactional id before is fenced, and what it left open is aborted.

    `enable_2pc` and `keep_prepared` with the pair of its own open transaction prepare that transaction: it is ended by
    the new pair alone, and by no timeout.
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
        answer = _insist(client, lambda: client.request(request, InitProducerIdResponse))
    else:
        answer = at_coordinator(
            client,
            CoordinatorKind.TRANSACTION,
            transactional_id,
            request,
            InitProducerIdResponse,
            version,
            again=_BUSY,
            resend=True,
        )
    _refuse(answer.error_code, f"InitProducerId for {transactional_id}" if transactional_id else "InitProducerId")
    ongoing = ProducerIdAndEpoch(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)
    return InitializedProducer(
        ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch), None if ongoing == _NO_PRODUCER else ongoing
    )


def add_partitions(
    client: Client, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
) -> None:
    """Tell the coordinator what the transaction will write to, before it does: by the rules before transactions v2."""
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
    answer = at_coordinator(
        client,
        CoordinatorKind.TRANSACTION,
        transactional_id,
        request,
        AddPartitionsToTxnResponse,
        _FROM_CLIENTS,
        code_of=_first_code,
        again=_BUSY,
        resend=True,
    )
    _refuse(_first_code(answer), f"adding partitions to the transaction of {transactional_id}")


def _first_code(answer: AddPartitionsToTxnResponse) -> int:
    """An error of the transaction stands at each partition; where one of them is refused, the others say so."""
    codes = [
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
        if each.partition_error_code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)
    ]
    return codes[0] if codes else ErrorCode.NONE


# --- ends -------------------------------------------------------------------------------------------------------------


def end(client: Client, ending: Ending, *, version: int) -> None:
    """`version` is that of transactions. Refused, if it cannot be ended so."""
    (code,) = end_all(client, [ending], version=version)
    _refuse(code, f"ending the transaction of {ending.transactional_id}")


def end_all(
    client: Client, endings: Sequence[Ending], *, version: int, timeout_s: float | None = None
) -> list[ErrorCode]:
    """End each, and say what was answered in the end. All that one coordinator ends is sent at once.

    Raises Refused or OSError if one of them is not answered in time, by default the client's; the others may have been
    ended. A time of 0 is for one attempt.
    """
    api_version = _END_TXN[version >= TRANSACTIONS_V2]
    codes: dict[int, ErrorCode] = {}

    def ask(place: tuple[str, int], indexes: list[int]) -> None:
        requests = [_end_request(endings[index]) for index in indexes]
        answers = client.request_all_at(place, requests, EndTxnResponse, api_version)
        for index, answer in zip(indexes, answers, strict=True):
            if answer.error_code not in _BUSY:
                codes[index] = ErrorCode(answer.error_code)
            elif answer.error_code in MOVING:
                _forget(client, endings[index].transactional_id)

    _until_all_are_answered(client, [ending.transactional_id for ending in endings], codes, ask, timeout_s=timeout_s)
    return [codes[index] for index in range(len(endings))]


def _until_all_are_answered(
    client: Client,
    transactional_ids: Sequence[str],
    answered: Mapping[int, object],
    ask: Callable[[tuple[str, int], list[int]], None],
    *,
    timeout_s: float | None = None,
) -> None:
    """Let `ask` put to each coordinator what concerns it, by their indexes, until every index is among the answered."""
    deadline = time.monotonic() + (client.timeout_s if timeout_s is None else timeout_s)
    while left := [index for index in range(len(transactional_ids)) if index not in answered]:
        failure: Exception = Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "transactions are still being ended")
        try:
            places = find_coordinators(
                client, CoordinatorKind.TRANSACTION, [transactional_ids[index] for index in left]
            )
            by_place: dict[tuple[str, int], list[int]] = defaultdict(list)
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
        if len(answered) < len(transactional_ids):
            if time.monotonic() > deadline:
                raise failure
            time.sleep(_BACKOFF_S)


def _forget(client: Client, transactional_id: str) -> None:
    """Where its coordinator was: it is looked for anew."""
    client.coordinators.pop((CoordinatorKind.TRANSACTION, transactional_id), None)


def _end_request(ending: Ending) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=ending.transactional_id,
        producer_id=ending.producer.producer_id,
        producer_epoch=ending.producer.producer_epoch,
        committed=ending.committed,
    )


# --- looking ----------------------------------------------------------------------------------------------------------


def describe(client: Client, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
    """What there is of each, without ids that their coordinators do not know; one question for each coordinator."""
    asked = list(dict.fromkeys(transactional_ids))
    answered: dict[int, describe_transactions.TransactionState] = {}

    def ask(place: tuple[str, int], indexes: list[int]) -> None:
        request = describe_transactions.DescribeTransactionsRequest(
            transactional_ids=tuple(asked[index] for index in indexes)
        )
        answer = client.request_at(place, request, describe_transactions.DescribeTransactionsResponse)
        states = {state.transactional_id: state for state in answer.transaction_states}
        for index in indexes:
            state = states[asked[index]]
            if state.error_code in MOVING:
                _forget(client, asked[index])
            else:
                answered[index] = state

    _until_all_are_answered(client, asked, answered, ask)
    return {
        state.transactional_id: _described(state)
        for state in answered.values()
        if state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    }


def _described(state: describe_transactions.TransactionState) -> DescribedTransaction:
    _refuse(state.error_code, f"describing the transaction of {state.transactional_id}")
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
    """The transactions whose ids begin so, of every broker; `states` are Kafka's names of them, and none means any.
    Their age is measured by the clocks of their coordinators; brokers before 3.8 list those of any age.
    """
    request = listing.ListTransactionsRequest(
        state_filters=states, duration_filter=older_than_ms, transactional_id_pattern=_pattern_of(prefix) + ".*"
    )
    listed = []
    answers = _of_every_broker(client, lambda _: request, listing.ListTransactionsResponse)
    for broker_id, answer in answers.items():
        _refuse(answer.error_code, f"listing the transactions of broker {broker_id}")
        listed += [
            ListedTransaction(each.transactional_id, each.transaction_state)
            for each in answer.transaction_states
            if each.transactional_id.startswith(prefix)  # brokers before 4.1 know no pattern
        ]
    return listed


def _of_every_broker(
    client: Client, request_to: Callable[[int], Message], answer_class: type[AnyAnswer]
) -> dict[int, AnyAnswer]:
    """Every broker's answer. Where one goes away meanwhile the others are asked again: they have taken its place."""
    deadline = time.monotonic() + client.timeout_s
    answers: dict[int, AnyAnswer] = {}
    while left := [broker_id for broker_id in client.broker_ids() if broker_id not in answers]:
        ask = partial(client.request_broker, left[0], request_to(left[0]), answer_class)
        try:
            answers[left[0]] = _insist(client, ask)
        except Refused as refused:
            if refused.code is not ErrorCode.BROKER_NOT_AVAILABLE or time.monotonic() > deadline:
                raise
            answers.clear()
    return answers


def _insist(client: Client, ask: Callable[[], AnyAnswer]) -> AnyAnswer:
    """The first answer that is final, over lost connections and brokers that are starting."""
    deadline = time.monotonic() + client.timeout_s
    while True:
        try:
            answer = ask()
            if code_of_answer(answer) not in RETRIABLE or time.monotonic() > deadline:
                return answer
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_BACKOFF_S)


def _pattern_of(text: str) -> str:
    """The text as a regular expression that Python's and RE2's engines read alike."""
    return "".join(each if each.isalnum() or each in "-_:%" else f"[{each}]" for each in text)


def _refuse(error_code: int, what: str) -> None:
    if error_code != ErrorCode.NONE:
        code = ErrorCode(error_code)
        raise Refused(code, f"{what}: {code.name}")
