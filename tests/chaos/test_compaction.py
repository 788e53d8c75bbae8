"""Compaction and retention under faults: whatever happens while a log is cleaned, the last value of every key is there.

Writers remember for each key what was acknowledged last and what they tried since. Values say whose they are: number N
of a key is never older than what was acknowledged, nor newer than what was tried.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.records import Codec, Record, build_batch
from kaspar.storage import AbortedTransaction
from tests.chaos.conftest import StartBroker, note_stall
from tests.chaos.faulty_clock import FaultyClock
from tests.chaos.mounts import free_bytes, small_disk
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import EARLIEST, RawClient
from tests.peers.raw_transactions import RawProducer
from tests.property.transactions_model import CommittedReader

TOPIC = "salaries"
SETTINGS = {
    "log.cleaner.backoff.ms": "10",
    "log.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "50",
    "transaction.state.log.num.partitions": "1",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "retention.ms": "-1",
    "internal.segment.bytes": "30000",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "50",
}
KEYS = [f"person-{number}" for number in range(40)]
OF_TRANSACTIONS = [f"account-{number}" for number in range(4)]
TOPIC_RESOURCE = 2


def value_of(key: str, number: int) -> bytes:
    return f"{key}:{number}:".encode().ljust(300, b".")


class Writers:
    """One writes single keys, the other all accounts at once in transactions, of which it aborts each third."""

    def __init__(self, port: int, seed: int) -> None:
        self.acknowledged = dict.fromkeys([*KEYS, *OF_TRANSACTIONS], -1)
        self.tried = dict.fromkeys([*KEYS, *OF_TRANSACTIONS], -1)
        self.aborted: set[int] = set()
        self.count = 0
        self._port = port
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write_keys), threading.Thread(target=self._write_transactions)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_acknowledgements(self, more: int) -> None:
        before = self.count
        wait_until(lambda: self.count >= before + more, "records are acknowledged", seconds=60)

    def _write_keys(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                with RawClient(self._port, timeout=5) as client:
                    while not self._stop.is_set():
                        number += 1
                        self._write_once(client, number)
            except OSError:
                self._stop.wait(0.01)  # the broker is down just now

    def _write_once(self, client: RawClient, number: int) -> None:
        keys = self._rng.sample(KEYS, self._rng.randint(1, 8))
        for key in keys:
            self.tried[key] = number
        batch = build_batch(records_of(keys, number), codec=self._rng.choice(list(Codec)))
        if client.produce_batch(TOPIC, bytes(batch)).error_code == 0:
            for key in keys:
                self.acknowledged[key] = number
            self.count += len(keys)

    def _write_transactions(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                with RawClient(self._port, timeout=5) as client:
                    producer = RawProducer(client, "transfers")
                    producer.begin_life()
                    while not self._stop.is_set():
                        number += 1
                        self._transfer(producer, number)
            except OSError:
                self._stop.wait(0.01)

    def _transfer(self, producer: RawProducer, number: int) -> None:
        commit = number % 3 != 0
        if not commit:
            self.aborted.add(number)
        for key in OF_TRANSACTIONS:
            self.tried[key] = number
        batch = producer.batch_of(TOPIC, records_of(OF_TRANSACTIONS, number))
        assert producer.write_batch(TOPIC, batch).error_code == ErrorCode.NONE
        if producer.end(commit=commit).error_code == ErrorCode.NONE and commit:
            for key in OF_TRANSACTIONS:
                self.acknowledged[key] = number
            self.count += len(OF_TRANSACTIONS)

    def check(self, last: dict[str, int]) -> None:
        """`last` is what a read_committed reader finds as the last number of each key."""
        for key, number in self.acknowledged.items():
            if number >= 0:
                assert number <= last.get(key, -1) <= self.tried[key], key
        of_transactions = {last.get(key) for key in OF_TRANSACTIONS}
        assert len(of_transactions) == 1, f"a transaction is there in part: {of_transactions}"
        assert not of_transactions & self.aborted


def records_of(keys: list[str], number: int) -> list[Record]:
    now_ms = 1_700_000_000_000 + number
    return [Record(now_ms, key.encode(), value_of(key, number)) for key in keys]


def last_numbers(broker: ObservedBroker) -> dict[str, int]:
    """Of each key, as a read_committed reader finds them; offsets go up, and so do a key's numbers."""
    reader = CommittedReader()
    with Client(broker.bootstrap) as client:
        offset = 0
        while (found := client.fetch(TOPIC, 0, offset, isolation_level=READ_COMMITTED, max_wait_ms=0)).records:
            aborted = [
                AbortedTransaction(each.producer_id, each.first_offset, -1, -1)
                for each in found.aborted_transactions or ()
            ]
            offset = reader.take(offset, found.records, aborted)
    last: dict[str, int] = {}
    for _, value in reader.seen:
        assert value is not None
        key, number, _ = value.decode().split(":")
        assert int(number) > last.get(key, -1), "an old value comes after a newer one"
        last[key] = int(number)
    return last


def alter(client: RawClient, **settings: str) -> None:
    configs = tuple(
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=configs)
    response = client.call(
        IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), IncrementalAlterConfigsResponse
    )
    assert response.responses[0].error_code == 0


@pytest.mark.timeout(3600)
def test_the_last_value_of_every_key_survives_kills(
    start_broker: StartBroker, rng: random.Random, rounds: int, request: pytest.FixtureRequest
) -> None:
    """The cleaner is slowed down, so that kills find it at work; transactions come and go meanwhile."""
    broker = start_broker(overrides=SETTINGS | {"log.cleaner.io.max.bytes.per.second": "5000000"})
    with broker.client() as client:
        assert client.create_topic(TOPIC, configs=COMPACTED) == 0
    cleanings = 0
    with Writers(broker.port, rng.randrange(1 << 30)) as writers:
        for _ in range(rounds):
            writers.wait_for_acknowledgements(100)
            wait_until(lambda: bool(broker.log_lines("cleaned a log")), "a log was cleaned")
            threading.Event().wait(rng.uniform(0.0, 0.3))
            note_stall(request.node.name, broker)
            broker.kill()
            cleanings = len(broker.log_lines("cleaned a log"))
            broker.start()
    writers.check(last_numbers(broker))
    # Markers stay for another pass, 78 bytes for each transaction.
    most = 100_000 + writers.count * 30
    wait_until(lambda: broker.log_size(TOPIC) < most, "all but the end of the log is cleaned", seconds=60)
    broker.restart()
    writers.check(last_numbers(broker))
    folder = broker.data_dir / f"{TOPIC}-0"
    wait_until(lambda: not [*folder.glob("*.cleaned"), *folder.glob("*.swap")], "nothing half-done is left")
    print(f"{rounds} kills, {cleanings} cleanings, {writers.count} values acknowledged")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with ExitStack() as stack:
        yield unless_missing(lambda: stack.enter_context(small_disk(tmp_path / "disk", megabytes=16)))


def fill(client: RawClient, batches: int) -> dict[str, int]:
    """Every batch has all keys, and as many that come once: the last number of each."""
    last: dict[str, int] = {}
    for number in range(batches):
        keys = [*KEYS, *(f"{key}-{number}" for key in KEYS)]
        assert client.produce_batch(TOPIC, bytes(build_batch(records_of(keys, number)))).error_code == 0
        last |= dict.fromkeys(keys, number)
    return last


def test_cleaning_waits_for_space_on_a_full_disk(disk: Path, start_broker: StartBroker) -> None:
    """What is being rewritten has no room: the log stays as it is, and is cleaned when there is space."""
    often = {"log.flush.offset.checkpoint.interval.ms": "50"}
    broker = start_broker(overrides=SETTINGS | often | {"log.dirs": str(disk / "data")})
    broker.data_dir = disk / "data"
    with broker.client() as client:
        larger = {"cleanup.policy": "delete", "internal.segment.bytes": "1000000", "flush.messages": "1"}
        assert client.create_topic(TOPIC, configs=COMPACTED | larger) == 0
        written = fill(client, 150)
        size = broker.log_size(TOPIC)
        recovery_point = f"{TOPIC} 0 {300 * len(KEYS)}"
        checkpoint = broker.data_dir / "recovery-point-offset-checkpoint"
        wait_until(lambda: recovery_point in checkpoint.read_text().splitlines(), "what is synced is written down")
        filler = disk / "filler"
        filler.write_bytes(bytes(free_bytes(disk)))
        alter(client, cleanup_policy="compact")
        broker.wait_for_log("a log cannot be cleaned now; it will be retried")
        assert last_numbers(broker) == written
        assert broker.log_size(TOPIC) == size
        filler.unlink()
        wait_until(lambda: broker.log_size(TOPIC) < size * 0.7, "the log is cleaned when there is space", seconds=60)
        assert last_numbers(broker) == written
        assert client.produce_batch(TOPIC, bytes(build_batch(records_of(KEYS, 300)))).error_code == 0
    assert not broker.log_lines("is offline")


def test_a_flipped_bit_makes_a_partition_uncleanable_and_costs_nothing(
    start_broker: StartBroker, rng: random.Random
) -> None:
    broker = start_broker(overrides=SETTINGS)
    with broker.client() as client:
        assert client.create_topic(TOPIC, configs=COMPACTED | {"cleanup.policy": "delete"}) == 0
        fill(client, 15)
    broker.stop()
    damaged = rng.choice(broker.segment_files(TOPIC)[:-1])
    content = bytearray(damaged.read_bytes())
    content[rng.randrange(len(content) - 200, len(content))] ^= 1 << rng.randrange(8)
    damaged.write_bytes(content)
    before = {path.name: path.read_bytes() for path in broker.segment_files(TOPIC)}
    broker.expect_error("a partition cannot be cleaned and will be skipped")
    broker.start()
    with broker.client() as client:
        alter(client, cleanup_policy="compact")
        broker.wait_for_log("a partition cannot be cleaned and will be skipped")
        assert {path.name: path.read_bytes() for path in broker.segment_files(TOPIC)} == before
        assert client.produce_batch(TOPIC, bytes(build_batch(records_of(KEYS, 30)))).error_code == 0
    uncleanable = [
        value for name, value in broker.metrics().items() if "uncleanable_partitions_count" in name.replace("-", "_")
    ]
    assert uncleanable == [1]


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_a_clock_that_jumps_deletes_nothing_that_should_stay(
    start_broker: StartBroker, tmp_path: Path, timestamp_type: str
) -> None:
    clock = unless_missing(lambda: FaultyClock.prepare(tmp_path))
    broker = start_broker(overrides=SETTINGS, environment=clock.environment)
    configs = {
        "retention.ms": "3600000",
        "internal.segment.bytes": "2000",
        "message.timestamp.type": timestamp_type,
        "message.timestamp.after.max.ms": str(1 << 62),
    }
    with broker.client() as client:
        assert client.create_topic(TOPIC, configs=configs) == 0
        for number in range(30):
            assert client.produce(TOPIC, [b"%d" % number * 50]).error_code == 0
        assert len(broker.segment_files(TOPIC)) > 2
        clock.set_ahead(5 * 86_400)
        broker.wait_for_log("the clock has jumped ahead")
        # Records from a clock that was ahead: they are young for days to come, which is what their timestamps say.
        assert client.produce(TOPIC, [b"from the future" * 100]).error_code == 0
        clock.set_ahead(0)
        broker.wait_for_log("the clock is back where it was expected")
        clock.set_ahead(-86_400)
        assert client.produce(TOPIC, [b"from the past" * 100]).error_code == 0
        clock.set_ahead(0)
        assert client.offset_at(TOPIC, EARLIEST) == (0, 0)
        assert len(list(client.read_all(TOPIC))) == 32
        alter(client, retention_ms="1")
        wait_until(lambda: client.offset_at(TOPIC, EARLIEST)[1] > 0, "what is old by any clock is deleted")
