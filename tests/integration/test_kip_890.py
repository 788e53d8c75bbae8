"""What KIP-890 is about: no message that comes late, or twice, touches another transaction than its own.

Each test speaks the wire protocol itself, in the order that the KIP fears. `--against kafka` runs them there.
"""

from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from tests.chaos.history.logs import Fate, read_partition
from tests.peers.against import broker_to_test
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import RawProducer, until_settled
from tests.peers.wire import leads

FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


@pytest.fixture(scope="module")
def shared_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("broker"), SETTINGS, ours=ObservedBroker) as running:
        yield running


@pytest.fixture
def client(shared_broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(shared_broker.port) as client:
        yield client


@pytest.fixture
def topic(shared_broker: BrokerProcess, client: RawClient, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.replace("[", "-").replace("]", "")
    assert client.create_topic(name) == ErrorCode.NONE
    wait_until(lambda: leads(shared_broker.host, shared_broker.port, name, [0]), "the topic has a leader")
    return name


@pytest.fixture
def producer(client: RawClient, topic: str) -> RawProducer:
    producer = RawProducer(client, f"producer of {topic}")
    producer.begin_life()
    return producer


def _fates(broker: BrokerProcess, topic: str) -> dict[bytes, Fate]:
    with Client(broker.bootstrap) as client:
        return {record.value or b"": record.fate for record in read_partition(client, topic, 0).records}


def _wait_for_fates(broker: BrokerProcess, topic: str, expected: dict[bytes, Fate]) -> None:
    """Markers are written after the response to EndTxn."""
    wait_until(lambda: _fates(broker, topic) == expected, f"the fates are {expected}")


@pytest.mark.parametrize("late_commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("first_commit", [True, False], ids=["committed", "aborted"])
def test_a_delayed_end_of_a_transaction_never_ends_the_next(
    shared_broker: BrokerProcess, producer: RawProducer, topic: str, first_commit: bool, late_commit: bool
) -> None:
    """The client gave up waiting, asked again on another connection, and went on; then the first request arrives."""
    assert producer.write(topic, b"first").error_code == ErrorCode.NONE
    delayed = producer.end_request(commit=late_commit)
    assert producer.end(commit=first_commit).error_code == ErrorCode.NONE
    assert producer.write(topic, b"second").error_code == ErrorCode.NONE

    assert until_settled(lambda: producer.ask_to_end(delayed)).error_code in FENCED
    outcome = Fate.COMMITTED if first_commit else Fate.ABORTED
    _wait_for_fates(shared_broker, topic, {b"first": outcome, b"second": Fate.OPEN})

    assert producer.end(commit=True).error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"first": outcome, b"second": Fate.COMMITTED})


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_repeated_end_txn_gets_the_same_response(producer: RawProducer, topic: str, commit: bool) -> None:
    """The first response was lost. The second gives the same next epoch, and no other."""
    producer.write(topic, b"value")
    request = producer.end_request(commit=commit)
    first = until_settled(lambda: producer.ask_to_end(request))
    second = until_settled(lambda: producer.ask_to_end(request))
    assert first.error_code == second.error_code == ErrorCode.NONE
    assert (first.producer_id, first.producer_epoch) == (second.producer_id, second.producer_epoch)
    assert first.producer_epoch == producer.epoch + 1


def test_a_delayed_record_of_an_ended_transaction_is_refused(
    shared_broker: BrokerProcess, producer: RawProducer, topic: str
) -> None:
    """Otherwise it would open a transaction that nobody knows of, and hold all readers back for good."""
    producer.write(topic, b"first")
    late = producer.batch(topic, [b"late"])
    assert producer.end(commit=True).error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"first": Fate.COMMITTED})
    assert producer.send(topic, late).error_code in FENCED
    assert producer.write(topic, b"second").error_code == ErrorCode.NONE
    assert producer.send(topic, late).error_code in FENCED
    assert producer.end(commit=True).error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"first": Fate.COMMITTED, b"second": Fate.COMMITTED})


@pytest.mark.parametrize(
    ("produce_version", "code"), [(11, ErrorCode.TRANSACTION_ABORTABLE), (10, ErrorCode.INVALID_TXN_STATE)]
)
def test_a_late_record_of_an_older_client_is_refused_by_verification(
    shared_broker: BrokerProcess, producer: RawProducer, topic: str, produce_version: int, code: ErrorCode
) -> None:
    """Transactions v1 keep their epoch, so only the leader's verification with the coordinator detects it."""
    producer.version, producer.produce_version = 1, produce_version
    assert producer.add_partitions(topic, 0) == ErrorCode.NONE
    producer.write(topic, b"first")
    late = producer.batch(topic, [b"late"])
    assert producer.end(commit=True).error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"first": Fate.COMMITTED})
    assert until_settled(lambda: producer.send(topic, late)).error_code == code
    assert _fates(shared_broker, topic) == {b"first": Fate.COMMITTED}


def test_a_commit_that_races_with_the_abort_of_a_timeout_is_fenced(
    shared_broker: BrokerProcess, client: RawClient, topic: str
) -> None:
    producer = RawProducer(client, f"producer of {topic}", timeout_ms=300)
    producer.begin_life()
    assert producer.write(topic, b"too slow").error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"too slow": Fate.ABORTED})

    # In the eyes of the coordinator that is the other end of the same transaction, and the epoch is another's by now.
    assert producer.end(commit=True).error_code in (ErrorCode.INVALID_TXN_STATE, *FENCED)
    assert producer.send(topic, producer.batch(topic, [b"more"])).error_code in FENCED
    assert _fates(shared_broker, topic) == {b"too slow": Fate.ABORTED}

    producer.begin_life()
    assert producer.write(topic, b"next").error_code == ErrorCode.NONE
    assert producer.end(commit=True).error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"too slow": Fate.ABORTED, b"next": Fate.COMMITTED})


def test_an_abort_without_a_record_does_not_fence_its_producer(
    shared_broker: BrokerProcess, producer: RawProducer, topic: str
) -> None:
    """A client cannot know whether any of its records arrived before it aborts."""
    for number in range(3):
        assert producer.end(commit=False).error_code == ErrorCode.NONE
        value = b"after %d" % number
        assert producer.write(topic, value).error_code == ErrorCode.NONE
        assert producer.end(commit=True).error_code == ErrorCode.NONE
        assert producer.end(commit=False).error_code == ErrorCode.NONE, "and once more, right after a commit"
    _wait_for_fates(shared_broker, topic, {b"after %d" % number: Fate.COMMITTED for number in range(3)})


def test_an_abort_without_a_record_may_be_asked_for_twice(producer: RawProducer, topic: str) -> None:
    request = producer.end_request(commit=False)
    first = until_settled(lambda: producer.ask_to_end(request))
    second = until_settled(lambda: producer.ask_to_end(request))
    assert first.error_code == second.error_code == ErrorCode.NONE
    assert (first.producer_id, first.producer_epoch) == (second.producer_id, second.producer_epoch)


def test_a_new_life_fences_the_one_before(shared_broker: BrokerProcess, producer: RawProducer, topic: str) -> None:
    producer.write(topic, b"old")
    successor = RawProducer(producer.client, producer.transactional_id)
    successor.begin_life()
    assert producer.send(topic, producer.batch(topic, [b"zombie"])).error_code in FENCED
    assert producer.end(commit=True).error_code in FENCED
    assert successor.write(topic, b"new").error_code == ErrorCode.NONE
    assert successor.end(commit=True).error_code == ErrorCode.NONE
    _wait_for_fates(shared_broker, topic, {b"old": Fate.ABORTED, b"new": Fate.COMMITTED})
