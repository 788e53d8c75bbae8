"""Prepared transactions over the wire: they outlive their producer and any restart of the broker, and wait for the
process that knows the pair of producer id and epoch that ends them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.chaos.history.logs import Fate, read_partition
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient, request_frame
from tests.peers.raw_transactions import RawProducer, find_coordinator, until_settled

ID = "orders-17"
TOPIC = "orders"
NO_TIMEOUT_MS = 2**31 - 1
SETTINGS = {"transaction.state.log.num.partitions": "3"}
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class Prepared:
    """A transaction whose producer has prepared it: `pair` ends it."""

    def __init__(self, client: RawClient, *values: bytes, timeout_ms: int = 60_000) -> None:
        self.producer = RawProducer(client, ID, timeout_ms=timeout_ms)
        self.producer.begin_life()
        assert self.producer.write(TOPIC, *values).error_code == ErrorCode.NONE
        response = init_v6(
            client,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            enable_2pc=True,
            keep_prepared_txn=True,
        )
        assert response.error_code == ErrorCode.NONE
        assert response.ongoing_txn_producer_id == self.producer.producer_id
        assert response.ongoing_txn_producer_epoch == self.producer.epoch
        self.pair = (response.producer_id, response.producer_epoch)


def init_v6(client: RawClient, *, timeout_ms: int = 60_000, **values: int) -> InitProducerIdResponse:
    find_coordinator(client, ID)
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=timeout_ms, **values)  # type: ignore[arg-type]
    return until_settled(lambda: client.call(request, InitProducerIdResponse, 6))


def end(client: RawClient, pair: tuple[int, int], *, commit: bool) -> EndTxnResponse:
    producer_id, epoch = pair
    request = EndTxnRequest(transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, committed=commit)
    return until_settled(lambda: client.call(request, EndTxnResponse, 5))


def describe(client: RawClient) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=(ID,))
    return until_settled(lambda: client.call(request, DescribeTransactionsResponse, 0).transaction_states[0])


def fates(broker: ObservedBroker) -> dict[bytes, Fate]:
    with Client(broker.bootstrap) as client:
        return {record.value or b"": record.fate for record in read_partition(client, TOPIC, 0).records}


def wait_for(broker: ObservedBroker, expected: dict[bytes, Fate]) -> None:
    """Markers are written after the response to EndTxn."""
    wait_until(lambda: fates(broker) == expected, f"the fates are {expected}")


def start(folder: Path, **overrides: str) -> ObservedBroker:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return ObservedBroker(folder, overrides={**SETTINGS, **named})


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ObservedBroker]:
    with start(tmp_path) as broker:
        with broker.client() as client:
            assert client.create_topic(TOPIC) == ErrorCode.NONE
        yield broker


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_the_holder_of_its_pair_ends_it_after_kill_9_of_the_broker(broker: ObservedBroker, commit: bool) -> None:
    with broker.client() as client:
        pair = Prepared(client, b"one", b"two").pair
    for _ in range(2):
        broker.kill()
        broker.start()
    assert fates(broker) == {b"one": Fate.OPEN, b"two": Fate.OPEN}
    with broker.client() as another:
        response = end(another, pair, commit=commit)
        assert response.error_code == ErrorCode.NONE
        assert (response.producer_id, response.producer_epoch) == (pair[0], pair[1] + 1)
        outcome = Fate.COMMITTED if commit else Fate.ABORTED
        wait_for(broker, {b"one": outcome, b"two": outcome})
        again = end(another, pair, commit=commit)
        assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, response.producer_epoch)
        assert end(another, pair, commit=not commit).error_code == ErrorCode.INVALID_TXN_STATE


def test_the_previous_epoch_is_fenced_at_its_partitions(broker: ObservedBroker) -> None:
    with broker.client() as client:
        prepared = Prepared(client, b"in time")
        late = prepared.producer.batch(TOPIC, [b"late"])
        assert prepared.producer.send(TOPIC, late).error_code in FENCED
        assert prepared.producer.end(commit=True).error_code in FENCED
    broker.kill()
    broker.start()
    with broker.client() as client:
        prepared.producer.client = client
        assert until_settled(lambda: prepared.producer.send(TOPIC, late)).error_code in FENCED
        assert end(client, prepared.pair, commit=True).error_code == ErrorCode.NONE
        wait_for(broker, {b"in time": Fate.COMMITTED})
        assert prepared.producer.send(TOPIC, late).error_code in FENCED


def test_it_has_no_timeout_and_others_have(broker: ObservedBroker) -> None:
    with broker.client() as client:
        prepared = Prepared(client, b"prepared", timeout_ms=300)
        other = RawProducer(client, "other", timeout_ms=600)
        other.begin_life()
        other.write(TOPIC, b"not prepared")
        assert describe(client).transaction_timeout_ms == NO_TIMEOUT_MS
        wait_for(broker, {b"prepared": Fate.OPEN, b"not prepared": Fate.ABORTED})
        assert end(client, prepared.pair, commit=True).error_code == ErrorCode.NONE
        wait_for(broker, {b"prepared": Fate.COMMITTED, b"not prepared": Fate.ABORTED})


def test_one_that_nobody_decides_about_is_aborted_when_it_is_too_old(tmp_path: Path) -> None:
    with start(tmp_path, kaspar_transaction_prepared_max_age_ms="500") as broker, broker.client() as client:
        client.create_topic(TOPIC)
        pair = Prepared(client, b"forgotten").pair
        wait_for(broker, {b"forgotten": Fate.ABORTED})
        assert end(client, pair, commit=True).error_code == ErrorCode.INVALID_TXN_STATE


def test_it_is_ended_by_hand_by_a_producer_of_its_id(broker: ObservedBroker) -> None:
    """What `kafka-transactions forceTerminateTransaction` does: InitProducerId without a word of keeping it."""
    with broker.client() as client:
        pair = Prepared(client, b"stuck").pair
        RawProducer(client, ID).begin_life()
        wait_for(broker, {b"stuck": Fate.ABORTED})
        assert end(client, pair, commit=True).error_code in FENCED


def test_it_is_shown_with_its_age(broker: ObservedBroker) -> None:
    with broker.client() as client:
        pair = Prepared(client, b"value").pair
        wait_until(lambda: broker.metrics()["kaspar_prepared_transactions"] == 1, "it is counted")
        wait_until(lambda: broker.metrics()["kaspar_prepared_transaction_oldest_age_seconds"] > 0, "it becomes older")
        assert describe(client).transaction_state == "Ongoing"
        request = ListTransactionsRequest(state_filters=("Ongoing",), transactional_id_pattern="orders-[0-9]+")
        listed = client.call(request, ListTransactionsResponse, 2).transaction_states
        assert [each.transactional_id for each in listed] == [ID]
        end(client, pair, commit=True)
        wait_until(lambda: broker.metrics()["kaspar_prepared_transactions"] == 0, "it is over")


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_client_that_follows_the_kip_finds_its_transaction_after_a_crash(
    broker: ObservedBroker, commit: bool
) -> None:
    """It starts with 2PC, stores the pair, and compares it with that of InitProducerId after it crashed."""
    with broker.client() as client:
        started = init_v6(client, timeout_ms=NO_TIMEOUT_MS, enable_2pc=True)
        producer = RawProducer(client, ID, producer_id=started.producer_id, epoch=started.producer_epoch)
        assert producer.write(TOPIC, b"value").error_code == ErrorCode.NONE
    broker.kill()
    broker.start()
    with broker.client() as client:
        response = init_v6(client, timeout_ms=NO_TIMEOUT_MS, enable_2pc=True, keep_prepared_txn=True)
        assert response.error_code == ErrorCode.NONE
        noted = (started.producer_id, started.producer_epoch)
        assert (response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch) == noted
        assert end(client, (response.producer_id, response.producer_epoch), commit=commit).error_code == ErrorCode.NONE
        wait_for(broker, {b"value": Fate.COMMITTED if commit else Fate.ABORTED})


def test_where_nothing_is_open_there_is_nothing_to_keep(broker: ObservedBroker) -> None:
    with broker.client() as client:
        response = init_v6(client, enable_2pc=True, keep_prepared_txn=True)
        assert response.error_code == ErrorCode.NONE
        assert (response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch) == (-1, -1)


@pytest.mark.parametrize(("enabled", "last_version"), [("true", 6), ("false", 5)])
def test_the_version_is_announced_and_served_only_where_it_is_allowed(
    tmp_path: Path, enabled: str, last_version: int
) -> None:
    with start(tmp_path, transaction_two_phase_commit_enable=enabled) as broker, broker.client() as client:
        request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        announced = client.call(request, ApiVersionsResponse).api_keys
        (versions,) = [each for each in announced if each.api_key == ApiKey.INIT_PRODUCER_ID]
        assert (versions.min_version, versions.max_version) == (0, last_version)
        if last_version < 6:
            client.send(request_frame(InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=1), 6))
            assert client.is_closed_by_broker()
