"""kill -9 between the end of a transaction and its last marker: it ends everywhere as it was decided, or nowhere yet.

A transaction spans several partitions and a group's offset. While its end is asked for, the broker is killed: before
each of the writes that this takes, one after the other, and at random moments.
"""

import contextlib
import random
import threading
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from tests.chaos.conftest import StartBroker
from tests.chaos.faulty_disk import FaultyDisk
from tests.chaos.history import OFFSETS_TOPIC, Fate, read_logs
from tests.chaos.history.logs import stored_commits
from tests.chaos.pipeline import COORDINATION
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import committed
from tests.peers.raw_transactions import GROUP, RawProducer, find_coordinator, until_settled

TOPIC = "orders"
PARTITIONS = 6
READERS = "readers"
LATEST_KILL_SECONDS = 0.005


@pytest.fixture
def broker(start_broker: StartBroker) -> ObservedBroker:
    return _prepared(start_broker(overrides=COORDINATION))


def _prepared(broker: ObservedBroker) -> ObservedBroker:
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=PARTITIONS) == 0
        find_coordinator(client, READERS, GROUP)
    return broker


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_kill_before_any_write_leaves_nothing_half_done(
    start_broker: StartBroker, tmp_path: Path, commit: bool
) -> None:
    """The decision, each marker, the completion: whichever it is killed before, all of them are there in the end."""
    disk = unless_missing(lambda: FaultyDisk.prepare(tmp_path, tmp_path / "broker-0" / "data"))
    broker = _prepared(start_broker(overrides=COORDINATION, environment=disk.environment))
    with broker.client() as client:
        producer = RawProducer(client, "transfers")
        producer.begin_life()
    expected: dict[str, Fate] = {}
    survived = False
    while not survived:
        number = len(expected)
        with broker.client() as client:
            producer.client = client
            _write_everywhere(producer, number)
            assert producer.commit_offset(READERS, TOPIC, number + 1) == ErrorCode.NONE
            disk.die_after(number)
            survived = _ask_to_end_and_wait(producer, commit=commit)
        disk.live_again()
        if not survived:
            broker.kill()  # it is dead, and gets its burial
            broker.start()
        with broker.client() as client:
            producer.client = client
            assert producer.end(commit=commit).error_code == ErrorCode.NONE
            expected[str(number)] = Fate.COMMITTED if commit else Fate.ABORTED
            assert until_settled_offset(client) == (number + 1 if commit else -1)
    assert len(expected) > PARTITIONS + 3, (
        "the decision, the markers, that of the offset, and the completion are writes"
    )
    _check(broker, expected)


def _ask_to_end_and_wait(producer: RawProducer, *, commit: bool) -> bool:
    """Whether the broker has survived all of the writes: the last says that the transaction is complete."""
    question = DescribeTransactionsRequest(transactional_ids=(producer.transactional_id,))

    def is_complete() -> bool:
        response = producer.client.call(question, DescribeTransactionsResponse)
        return response.transaction_states[0].transaction_state.startswith("Complete")

    try:
        until_settled(lambda: producer.ask_to_end(producer.end_request(commit=commit)))
        wait_until(is_complete, "the transaction is complete")
    except OSError:
        return False
    return True


@pytest.mark.timeout(3600)
def test_a_decided_transaction_ends_everywhere_over_kills(
    broker: ObservedBroker, rng: random.Random, rounds: int
) -> None:
    """The producer asks again after the restart, as clients do: the response then is the transaction's outcome."""
    expected: dict[str, Fate] = {}
    offset = 0
    with broker.client() as client:
        producer = RawProducer(client, "transfers")
        producer.begin_life()
    for number in range(rounds):
        commit = rng.random() < 0.7
        with broker.client() as client:
            producer.client = client
            _write_everywhere(producer, number)
            assert producer.commit_offset(READERS, TOPIC, number + 1) == ErrorCode.NONE
            _ask_to_end_and_kill(broker, producer, commit=commit, after=rng.uniform(0, LATEST_KILL_SECONDS))
        broker.start()
        with broker.client() as client:
            producer.client = client
            assert producer.end(commit=commit).error_code == ErrorCode.NONE
            expected[str(number)] = Fate.COMMITTED if commit else Fate.ABORTED
            offset = number + 1 if commit else offset
            assert until_settled_offset(client) == (offset or -1)
    _check(broker, expected)


@pytest.mark.timeout(3600)
def test_a_transaction_left_by_a_dead_producer_ends_alike_everywhere_over_kills(
    broker: ObservedBroker, rng: random.Random, rounds: int
) -> None:
    """No retry: after the restart a new producer instance starts, and aborts what was not decided."""
    for number in range(rounds):
        with broker.client() as client:
            producer = RawProducer(client, "transfers")
            producer.begin_life()
            _write_everywhere(producer, number)
            _ask_to_end_and_kill(broker, producer, commit=True, after=rng.uniform(0, LATEST_KILL_SECONDS))
        broker.start()
    with broker.client() as client:
        RawProducer(client, "transfers").begin_life()
    _check(broker, None)


def _write_everywhere(producer: RawProducer, number: int) -> None:
    for partition in range(PARTITIONS):
        value = str(number).encode()
        assert producer.write(TOPIC, value, partition=partition).error_code == ErrorCode.NONE


def _ask_to_end_and_kill(broker: ObservedBroker, producer: RawProducer, *, commit: bool, after: float) -> None:
    killer = threading.Timer(after, broker.kill)
    killer.start()
    with contextlib.suppress(OSError):  # killed before it responded
        until_settled(lambda: producer.ask_to_end(producer.end_request(commit=commit)))
    killer.join()


def until_settled_offset(client: RawClient) -> int:
    """The committed offset, once it is served: not while the coordinator loads, or while an offset is pending."""
    responses: list[int] = []

    def reported() -> bool:
        code, offsets = committed(client, READERS, TOPIC, 0)
        if code == ErrorCode.NONE:
            responses.append(offsets[0])
        return bool(responses)

    wait_until(reported, "the committed offset is reported")
    return responses[-1]


def _check(broker: ObservedBroker, expected: dict[str, Fate] | None) -> None:
    """Every partition has the same outcome for every transaction, and none is left open."""
    with Client(broker.bootstrap) as client:
        wait_until(lambda: _all_is_ended(client), "every marker is written")
        logs = read_logs(client, [TOPIC, OFFSETS_TOPIC])
    fates = [{record.text: record.fate for record in log.records} for (topic, _), log in logs.items() if topic == TOPIC]
    assert all(each == fates[0] for each in fates), "a transaction ended in different ways"
    assert Fate.OPEN not in fates[0].values()
    if expected is not None:
        assert fates[0] == expected
    offsets = [commit.offset or 0 for commit in stored_commits(logs)]
    assert offsets == sorted(offsets)


def _all_is_ended(client: Client) -> bool:
    """Whether no transaction is open in any partition."""
    for partition in range(PARTITIONS):
        found = client.fetch(TOPIC, partition, 0, max_wait_ms=0, isolation_level=READ_COMMITTED)
        if found.last_stable_offset != found.high_watermark:
            return False
    return True
