"""Consume-transform-produce under kill -9 of producers, processors and the broker: every record once, in order.

Afterwards the checker of histories goes through all that happened (`tests/chaos/history`).
"""

import random
import threading
from pathlib import Path

import pytest

from tests.chaos.actors.membership import CONSUMER_PROTOCOL, COOPERATIVE, SESSION_TIMEOUT_MS
from tests.chaos.conftest import StartBroker, note_stall
from tests.chaos.faulty_disk import FaultyDisk
from tests.chaos.history import check
from tests.chaos.pipeline import COORDINATION, PipelineRun
from tests.chaos.readers import UncommittedReader
from tests.chaos.test_kill import SETTINGS
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker

STRATEGIES = ["range", COOPERATIVE, CONSUMER_PROTOCOL]
LONGER_THAN_A_SESSION = SESSION_TIMEOUT_MS / 1000 + 0.5
SMALL_SEGMENTS = {"internal.segment.bytes": "100000"}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_record_is_processed_once_over_kills(
    start_broker: StartBroker,
    rng: random.Random,
    rounds: int,
    strategy: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    broker = start_broker(overrides=SETTINGS | COORDINATION)
    with PipelineRun(
        broker.bootstrap, tmp_path / "actors", rng, strategy, configs=SMALL_SEGMENTS, client=broker.clients
    ) as run:
        for _ in range(rounds):
            run.wait_for_progress()
            threading.Event().wait(rng.uniform(0.0, 0.5))
            _disturb(run, broker, rng, request.node.name)
        history = run.finish()
    assert check(history) == []
    assert run.stock_reader.count > 0


def _disturb(run: PipelineRun, broker: ObservedBroker, rng: random.Random, test: str) -> None:
    """One fault. The broker's own is as likely as all the others together."""
    processor, feeder = rng.choice(run.processors), rng.choice(run.feeders)
    match rng.choice(["broker", "broker", "both", "processor", "feeder", "pause"]):
        case "broker":
            _kill_broker(broker, test)
            broker.start()
        case "both":
            _kill_broker(broker, test)
            run.lives.kill(processor)
            broker.start()
            run.lives.restart(processor)
        case "processor":
            run.lives.kill(processor)
            run.lives.restart(processor)
        case "feeder":
            run.lives.kill(feeder)
            run.lives.restart(feeder)
        case _:
            run.lives.pause(processor)
            threading.Event().wait(LONGER_THAN_A_SESSION)
            run.lives.resume(processor)


def _kill_broker(broker: ObservedBroker, test: str) -> None:
    note_stall(test, broker)
    broker.kill()


@pytest.mark.timeout(3600)
def test_every_record_is_processed_once_over_power_cuts(
    start_broker: StartBroker, rng: random.Random, rounds: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With group commit on every topic, the internal ones too, the disk may forget whatever was not synced."""
    disk = unless_missing(lambda: FaultyDisk.prepare(tmp_path))
    settings = SETTINGS | COORDINATION | {"log.flush.interval.messages": "1"}
    broker = start_broker(overrides=settings, environment=disk.environment)
    with PipelineRun(
        broker.bootstrap, tmp_path / "actors", rng, "range", configs=SMALL_SEGMENTS, client=broker.clients
    ) as run:
        for _ in range(rounds):
            run.wait_for_progress()
            threading.Event().wait(rng.uniform(0.0, 0.5))
            _kill_broker(broker, request.node.name)
            disk.cut_power(broker.data_dir, rng)
            broker.start()
        history = run.finish()
    assert check(history) == []
    assert disk.cut_bytes > 0, "no cut took anything away, so nothing was tried"


def test_the_checker_finds_a_reader_of_uncommitted_records(
    start_broker: StartBroker, rng: random.Random, tmp_path: Path
) -> None:
    """The counter-check, on a real history: transactions were aborted, and a reader of all of them is detected."""
    broker = start_broker(overrides=COORDINATION)
    folder = tmp_path / "actors"
    with PipelineRun(broker.bootstrap, folder, rng, "range", processors=1, feeders=1, client=broker.clients) as run:
        with UncommittedReader("uncommitted-reader", folder, broker.bootstrap, "out", run.partitions) as reader:
            run.wait_until_aborted_are_read(reader)
        history = run.finish()
    found = check(history)
    assert found
    assert all("uncommitted-reader" in violation.what for violation in found)
    assert {violation.rule for violation in found} == {"only what is committed is read", "readers skip nothing"}
