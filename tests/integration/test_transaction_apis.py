"""The transaction coordinator's APIs over the wire, at their versions. `--against kafka` runs them there."""

from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kaspar.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kaspar.protocol.messages.end_txn import EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.peers.against import broker_to_test
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP, RawProducer, find_coordinator, until_settled
from tests.peers.wire import leads

NONE = ErrorCode.NONE
TOPIC = "written-to"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("broker"), SETTINGS, ours=ObservedBroker) as started:
        with RawClient(started.port) as client:
            assert client.create_topic(TOPIC, partitions=3) == NONE
        wait_until(lambda: leads(started.host, started.port, TOPIC, [0, 1, 2]), "the topic has leaders")
        yield started


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


@pytest.fixture
def producer(client: RawClient, request: pytest.FixtureRequest) -> RawProducer:
    producer = RawProducer(client, f"id of {request.node.name}")
    producer.begin_life()
    return producer


def described(client: RawClient, transactional_id: str) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
    return client.call(request, DescribeTransactionsResponse).transaction_states[0]


def wait_for_state(client: RawClient, transactional_id: str, state: str) -> None:
    wait_until(lambda: described(client, transactional_id).transaction_state == state, f"{transactional_id} is {state}")


def codes(results: tuple[AddPartitionsToTxnTopicResult, ...]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for topic in results
        for result in topic.results_by_partition
    }


def transaction(
    producer: RawProducer, *partitions: int, topic: str = TOPIC, verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=(AddPartitionsToTxnTopic(name=topic, partitions=partitions),),
    )


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id_names_a_fenced_producer_as_its_version_can(
    client: RawClient, producer: RawProducer, version: int
) -> None:
    if version < 3:
        request = InitProducerIdRequest(transactional_id=producer.transactional_id, transaction_timeout_ms=1000)
        response = client.call(request, InitProducerIdResponse, version)
        assert (response.error_code, response.producer_epoch) == (NONE, producer.epoch + 1)
        return
    RawProducer(client, producer.transactional_id).begin_life()
    RawProducer(client, producer.transactional_id).begin_life()
    request = InitProducerIdRequest(
        transactional_id=producer.transactional_id,
        transaction_timeout_ms=1000,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    response = client.call(request, InitProducerIdResponse, version)
    expected = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert (response.error_code, response.producer_id, response.producer_epoch) == (expected, -1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * 60_000 + 1])
def test_init_producer_id_refuses_timeouts_that_are_not_allowed(client: RawClient, timeout_ms: int) -> None:
    find_coordinator(client, "any")
    request = InitProducerIdRequest(transactional_id="any", transaction_timeout_ms=timeout_ms)
    response = until_settled(lambda: client.call(request, InitProducerIdResponse, 5))
    assert response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("version", range(4))
def test_add_partitions_opens_a_transaction(client: RawClient, producer: RawProducer, version: int) -> None:
    def add(epoch: int, *partitions: int) -> dict[tuple[str, int], int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=partitions),),
        )
        return codes(client.call(request, AddPartitionsToTxnResponse, version).results_by_topic_v3_and_below)

    assert add(producer.epoch, 0, 1) == {(TOPIC, 0): NONE, (TOPIC, 1): NONE}
    assert add(producer.epoch, 1) == {(TOPIC, 1): NONE}
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert add(producer.epoch + 1, 2) == {(TOPIC, 2): fenced}
    assert add(producer.epoch, 2, 3) == {
        (TOPIC, 2): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (TOPIC, 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    state = described(client, producer.transactional_id)
    assert state.transaction_state == "Ongoing"
    assert {(each.topic, *sorted(each.partitions)) for each in state.topics} == {(TOPIC, 0, 1)}


@pytest.mark.parametrize("version", [4, 5])
def test_add_partitions_of_several_transactions_at_once(client: RawClient, producer: RawProducer, version: int) -> None:
    other = RawProducer(client, f"another {producer.transactional_id}")
    other.begin_life()
    stranger = RawProducer(client, f"nobody's {producer.transactional_id}", producer_id=1, epoch=0)
    assert other.add_partitions(TOPIC, 0) == NONE
    request = AddPartitionsToTxnRequest(
        transactions=(
            transaction(producer, 0, 2),
            transaction(other, 0, 1, verify_only=True),
            transaction(stranger, 0),
        )
    )
    response = client.call(request, AddPartitionsToTxnResponse, version)
    found = {each.transactional_id: codes(each.topic_results) for each in response.results_by_transaction}
    assert response.error_code == NONE
    assert found == {
        producer.transactional_id: {(TOPIC, 0): NONE, (TOPIC, 2): NONE},
        other.transactional_id: {(TOPIC, 0): NONE, (TOPIC, 1): ErrorCode.TRANSACTION_ABORTABLE},
        stranger.transactional_id: {(TOPIC, 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    }


@pytest.mark.parametrize("version", range(5))
def test_add_offsets_adds_the_groups_partition(client: RawClient, producer: RawProducer, version: int) -> None:
    find_coordinator(client, "group", GROUP)

    def add(epoch: int) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            group_id="group",
        )
        return client.call(request, AddOffsetsToTxnResponse, version).error_code

    assert add(producer.epoch) == NONE
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert add(producer.epoch + 1) == fenced
    (topic,) = described(client, producer.transactional_id).topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", (0,))


@pytest.mark.parametrize("version", range(6))
def test_end_txn_by_the_rules_of_its_version(client: RawClient, producer: RawProducer, version: int) -> None:
    assert producer.add_partitions(TOPIC, 0) == NONE
    request = producer.end_request(commit=True)
    response = client.call(request, EndTxnResponse, version)
    next_pair = (producer.producer_id, producer.epoch + 1) if version >= 5 else (-1, -1)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (NONE, *next_pair)
    wait_for_state(client, producer.transactional_id, "CompleteCommit")
    assert until_settled(lambda: client.call(request, EndTxnResponse, version)).error_code == NONE
    producer.epoch += 5
    response = client.call(producer.end_request(commit=True), EndTxnResponse, version)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert response.error_code == fenced
    producer.producer_id += 1_000_000
    response = client.call(producer.end_request(commit=True), EndTxnResponse, version)
    assert response.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_ids_that_are_empty_or_unknown_are_refused(client: RawClient) -> None:
    find_coordinator(client, "unknown")
    unknown = RawProducer(client, "unknown", producer_id=1, epoch=0)
    assert until_settled(lambda: unknown.ask_to_end(unknown.end_request(commit=True))).error_code == (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    empty = RawProducer(client, "", producer_id=1, epoch=0)
    assert empty.ask_to_end(empty.end_request(commit=True)).error_code == ErrorCode.INVALID_REQUEST
    assert empty.add_partitions(TOPIC, 0) == ErrorCode.INVALID_REQUEST
    assert described(client, "").error_code == ErrorCode.INVALID_REQUEST
    assert described(client, "unknown").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_transactions_are_listed_by_state_producer_age_and_pattern(client: RawClient, producer: RawProducer) -> None:
    idle = RawProducer(client, f"idle {producer.transactional_id}")
    idle.begin_life()
    assert producer.add_partitions(TOPIC, 0) == NONE
    mine = {producer.transactional_id, idle.transactional_id}

    def listed(version: int, **filters: object) -> set[str]:
        request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]
        response = client.call(request, ListTransactionsResponse, version)
        assert response.error_code == NONE
        return {each.transactional_id for each in response.transaction_states} & mine

    for version in range(3):
        assert listed(version) == mine
        assert listed(version, state_filters=("Ongoing",)) == {producer.transactional_id}
        assert listed(version, state_filters=("Nonsense",)) == set()
        assert listed(version, producer_id_filters=(idle.producer_id,)) == {idle.transactional_id}
    assert listed(1, duration_filter=60_000, state_filters=("Ongoing",)) == set()
    assert listed(2, transactional_id_pattern="idle .*") == {idle.transactional_id}
    assert listed(2, transactional_id_pattern="idle") == set(), "it has to match from beginning to end"
    assert listed(2, transactional_id_pattern="") == mine

    request = ListTransactionsRequest(state_filters=("Nonsense", "Ongoing"))
    assert client.call(request, ListTransactionsResponse, 2).unknown_state_filters == ("Nonsense",)
    request = ListTransactionsRequest(transactional_id_pattern="(")
    response = client.call(request, ListTransactionsResponse, 2)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
