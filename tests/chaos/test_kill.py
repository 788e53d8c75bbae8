"""kill -9 at random moments under load: nothing acknowledged is lost, nothing that was read changes or goes away."""

import random
import threading
from pathlib import Path

import pytest

from tests.chaos.conftest import StartBroker, note_stall
from tests.chaos.load import Producers, Witness, read_everything
from tests.peers.observed import ObservedBroker
from tests.peers.raw_client import RawClient

TOPIC = "orders"
PARTITIONS = 3
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flush_messages", ["9223372036854775807", "1"], ids=["page cache", "group commit"])
def test_nothing_acknowledged_is_lost_over_kills(
    start_broker: StartBroker,
    rng: random.Random,
    rounds: int,
    flush_messages: str,
    request: pytest.FixtureRequest,
) -> None:
    """What a killed process has written is in the kernel's page cache, so even acks=1 without a sync loses nothing."""
    broker = start_broker(overrides=SETTINGS)
    with broker.client() as client:
        # Small segments, so that kills also meet rolls, snapshots and index files that are being made.
        configs = {"internal.segment.bytes": "100000", "flush.messages": flush_messages}
        assert client.create_topic(TOPIC, partitions=PARTITIONS, configs=configs) == 0
    with (
        Witness(broker.port, TOPIC, PARTITIONS) as witness,
        Producers(broker.bootstrap, TOPIC, PARTITIONS, client=broker.clients) as producers,
    ):
        for _ in range(rounds):
            producers.wait_for_acknowledgements()
            threading.Event().wait(rng.uniform(0.0, 0.5))
            note_stall(request.node.name, broker)
            broker.kill()
            broker.start()
    assert not producers.problems, producers.problems[:5]
    with broker.client() as client:
        found = read_everything(client, TOPIC, PARTITIONS)
    producers.ledger.check(found)
    witness.check(found)
    assert broker.log_text().count("clean=False") == rounds, "every start after a kill is logged as one"
    assert witness.seen_count > 0
    print(f"{rounds} kills, {producers.ledger.count} records acknowledged, {witness.seen_count} read on the way")


@pytest.mark.timeout(3600)
def test_topics_are_there_or_not_over_kills(start_broker: StartBroker, rng: random.Random, rounds: int) -> None:
    """A create or delete that was acknowledged stays done; any other is done or undone, never half done."""
    broker = start_broker()
    alive: set[str] = set()
    unsure: set[str] = set()
    for number in range(rounds):
        killer = threading.Timer(rng.uniform(0.0, 0.3), broker.kill)
        killer.start()
        _create_and_delete_until_killed(broker, f"round-{number}", rng, alive, unsure)
        killer.join()
        broker.start()
        with broker.client() as client:
            topics = client.topics()
            assert alive <= topics, f"topics that were created are gone: {alive - topics}"
            assert topics <= alive | unsure, f"topics that were deleted are back: {topics - alive - unsure}"
            for topic in topics:
                assert client.produce(topic, [b"x"], partition=1).error_code == 0
            alive = topics
            unsure.clear()
    folders = {path.name.rpartition("-")[0] for path in _partition_folders(broker.data_dir)}
    assert folders == alive, "a folder without a topic, or a topic without its folders"


def _create_and_delete_until_killed(
    broker: ObservedBroker, prefix: str, rng: random.Random, alive: set[str], unsure: set[str]
) -> None:
    """`unsure`: requests that got no response."""
    number = 0
    try:
        with RawClient(broker.port) as client:
            while True:
                if alive and rng.random() < 0.4:
                    topic = rng.choice(sorted(alive))
                    alive.discard(topic)
                    unsure.add(topic)
                    assert client.delete_topic(topic) == 0
                    unsure.discard(topic)
                else:
                    topic = f"{prefix}-{number}"
                    number += 1
                    unsure.add(topic)
                    assert client.create_topic(topic, partitions=2) == 0
                    unsure.discard(topic)
                    alive.add(topic)
    except OSError:
        return  # killed


def _partition_folders(data_dir: Path) -> list[Path]:
    """Folders of partitions in use: not those of deleted topics, which wait to be removed."""
    return [path for path in data_dir.iterdir() if path.is_dir() and not path.name.endswith("-delete")]
