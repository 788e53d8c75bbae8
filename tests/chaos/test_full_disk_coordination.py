"""A full disk under commits and transactions: what was acknowledged stays, and all goes on when space returns."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from tests.chaos.conftest import StartBroker
from tests.chaos.history import Fate, read_partition
from tests.chaos.mounts import free_bytes, small_disk
from tests.chaos.pipeline import COORDINATION
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import commit, committed
from tests.peers.raw_transactions import GROUP, RawProducer, find_coordinator

TOPIC = "orders"
READERS = "readers"
MOST_COMMITS = 10_000  # by then a few kilobytes of a last page are surely used up


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with ExitStack() as stack:
        yield unless_missing(lambda: stack.enter_context(small_disk(tmp_path / "disk", megabytes=24)))


@pytest.fixture
def broker(disk: Path, start_broker: StartBroker) -> ObservedBroker:  # the disk must outlive the broker
    broker = start_broker(overrides=COORDINATION | {"log.dirs": str(disk / "data")})
    broker.data_dir = disk / "data"
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=2) == 0
        find_coordinator(client, READERS, GROUP)
    return broker


def _fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb") as file:
        file.write(bytes(free_bytes(disk)))
    return filler


def _commit_until_refused(client: RawClient, offset: int) -> int:
    """The last offset that was acknowledged."""
    for following in range(offset + 1, offset + MOST_COMMITS):
        code = commit(client, READERS, TOPIC, {0: following})
        if code != ErrorCode.NONE:
            assert code in RETRIABLE, f"a client would not try again after {code}"
            return following - 1
    raise AssertionError("the disk is full, and commits are taken")


def test_commits_are_refused_until_space_returns(broker: ObservedBroker, disk: Path) -> None:
    with broker.client() as client:
        assert commit(client, READERS, TOPIC, {0: 1, 1: 100}) == ErrorCode.NONE
        filler = _fill(disk)
        last = _commit_until_refused(client, 1)
        assert committed(client, READERS, TOPIC, 0, 1) == (ErrorCode.NONE, {0: last, 1: 100}), (
            "what is refused is undone"
        )

        filler.unlink()
        wait_until(lambda: commit(client, READERS, TOPIC, {0: last + 1}) == ErrorCode.NONE, "commits go on")
        assert committed(client, READERS, TOPIC, 0, 1) == (ErrorCode.NONE, {0: last + 1, 1: 100})
        filler = _fill(disk)
        last = _commit_until_refused(client, last + 1)
    broker.kill()
    broker.start()
    with broker.client() as client:
        expected = (ErrorCode.NONE, {0: last, 1: 100})
        wait_until(lambda: committed(client, READERS, TOPIC, 0, 1) == expected, "what was acknowledged is there")
    filler.unlink()


def test_transactions_end_as_decided_when_space_returns(broker: ObservedBroker, disk: Path, rng: random.Random) -> None:
    """The disk fills up while transactions are open. None is lost, none is doubled, none hangs."""
    with broker.client() as client:
        producer, other = RawProducer(client, "transfers"), RawProducer(client, "payments")
        for each in (producer, other):
            each.begin_life()
        assert producer.write(TOPIC, b"early").error_code == ErrorCode.NONE
        assert other.write(TOPIC, b"to be aborted", partition=1).error_code == ErrorCode.NONE
        assert producer.commit_offset(READERS, TOPIC, 5) == ErrorCode.NONE
        filler = _fill(disk)
        _use_up_the_rest(client, rng)

        # Sent once: done, or refused with a retriable error.
        for each, commits in ((producer, True), (other, False)):
            code = each.ask_to_end(each.end_request(commit=commits)).error_code
            assert code == ErrorCode.NONE or code in RETRIABLE, f"a client would not try again after {code}"

        filler.unlink()
        _insist(lambda: producer.end(commit=True).error_code)
        _insist(lambda: other.end(commit=False).error_code)
        _wait_for_fates(broker, 0, {b"early": Fate.COMMITTED})
        _wait_for_fates(broker, 1, {b"to be aborted": Fate.ABORTED})
        wait_until(lambda: committed(client, READERS, TOPIC, 0) == (0, {0: 5}), "the offset of the transaction counts")
        assert producer.write(TOPIC, b"later").error_code == ErrorCode.NONE
        assert producer.end(commit=True).error_code == ErrorCode.NONE
        _wait_for_fates(broker, 0, {b"early": Fate.COMMITTED, b"later": Fate.COMMITTED})
    assert not broker.log_lines("is offline")


def _use_up_the_rest(client: RawClient, rng: random.Random) -> None:
    """The internal topics' last pages have room for some small records still."""
    offset = 10
    while commit(client, f"others-{rng.randrange(50)}", TOPIC, {1: offset}) == ErrorCode.NONE:
        offset += 1
        assert offset < MOST_COMMITS


def _insist(step: Callable[[], int]) -> None:
    wait_until(lambda: step() == ErrorCode.NONE, "the transaction is ended")


def _wait_for_fates(broker: ObservedBroker, partition: int, expected: dict[bytes, Fate]) -> None:
    def fates() -> dict[bytes, Fate]:
        with Client(broker.bootstrap) as client:
            return {record.value or b"": record.fate for record in read_partition(client, TOPIC, partition).records}

    wait_until(lambda: fates() == expected, f"the fates are {expected}")
