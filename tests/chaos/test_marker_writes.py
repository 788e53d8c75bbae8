"""kill -9 between the end of a transaction and its last marker: it ends everywhere as it was decided, or nowhere yet.

Many short rounds. In each a transaction spans several partitions and a group's offset; while its end is asked for, the
broker is killed at a random moment, which may be before the decision is in the log, between two markers, or when all is
done.
"""

import contextlib
import random
import threading

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from tests.chaos.conftest import StartBroker
from tests.chaos.history import OFFSETS_TOPIC, Fate, read_logs
from tests.chaos.history.logs import stored_commits
from tests.chaos.pipeline import COORDINATION
from tests.chaos.readers import READ_COMMITTED
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import committed
from tests.peers.raw_transactions import GROUP, RawProducer, find_coordinator, until_settled

TOPIC = "orders"
PARTITIONS = 6
READERS = "readers"
ROUNDS_FOR_ONE = 2  # these are short
LATEST_KILL_SECONDS = 0.02


@pytest.fixture
def broker(start_broker: StartBroker) -> ObservedBroker:
    broker = start_broker(overrides=COORDINATION)
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=PARTITIONS) == 0
        find_coordinator(client, READERS, GROUP)
    return broker


@pytest.mark.timeout(3600)
def test_a_decided_transaction_ends_everywhere_over_kills(
    broker: ObservedBroker, chance: random.Random, rounds: int
) -> None:
    """The producer asks again after the restart, as clients do: whatever it is told then is what became of it."""
    expected: dict[str, Fate] = {}
    offset = 0
    with broker.client() as client:
        producer = RawProducer(client, "transfers")
        producer.begin_life()
    for number in range(rounds * ROUNDS_FOR_ONE):
        commit = chance.random() < 0.7
        with broker.client() as client:
            producer.client = client
            _write_everywhere(producer, number)
            assert producer.commit_offset(READERS, TOPIC, number + 1) == ErrorCode.NONE
            _ask_to_end_and_kill(broker, producer, commit=commit, after=chance.uniform(0, LATEST_KILL_SECONDS))
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
    broker: ObservedBroker, chance: random.Random, rounds: int
) -> None:
    """Nobody asks again: after the restart another life of the producer begins, and aborts what was not decided."""
    for number in range(rounds * ROUNDS_FOR_ONE):
        with broker.client() as client:
            producer = RawProducer(client, "transfers")
            producer.begin_life()
            _write_everywhere(producer, number)
            _ask_to_end_and_kill(broker, producer, commit=True, after=chance.uniform(0, LATEST_KILL_SECONDS))
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
    with contextlib.suppress(OSError):  # killed before it was answered
        until_settled(lambda: producer.ask_to_end(producer.end_request(commit=commit)))
    killer.join()


def until_settled_offset(client: RawClient) -> int:
    """Where the readers are, once it is told: not while the coordinator loads, or a transaction's offset is pending."""
    answers: list[int] = []

    def told() -> bool:
        code, offsets = committed(client, READERS, TOPIC, 0)
        if code == ErrorCode.NONE:
            answers.append(offsets[0])
        return bool(answers)

    wait_until(told, "the committed offset is told")
    return answers[-1]


def _check(broker: ObservedBroker, expected: dict[str, Fate] | None) -> None:
    """Every partition tells the same fate of every transaction, and none is left open."""
    with Client(broker.bootstrap) as client:
        for partition in range(PARTITIONS):
            wait_until(lambda partition=partition: _is_stable(client, partition), "every marker is written")  # type: ignore[misc]
        logs = read_logs(client, [TOPIC, OFFSETS_TOPIC])
    fates = [{record.text: record.fate for record in log.records} for (topic, _), log in logs.items() if topic == TOPIC]
    assert all(each == fates[0] for each in fates), "a transaction ended in different ways"
    assert Fate.OPEN not in fates[0].values()
    if expected is not None:
        assert fates[0] == expected
    offsets = [commit.offset or 0 for commit in stored_commits(logs)]
    assert offsets == sorted(offsets)


def _is_stable(client: Client, partition: int) -> bool:
    found = client.fetch(TOPIC, partition, 0, max_wait_ms=0, isolation_level=READ_COMMITTED)
    return found.last_stable_offset == found.high_watermark
