"""Power cuts under load in group commit (`flush.messages=1`): what was acknowledged or read is on the disk."""

import random
import threading
from pathlib import Path

import pytest

from tests.chaos.conftest import StartBroker, note_stall
from tests.chaos.faulty_disk import FaultyDisk
from tests.chaos.load import Producers, Witness, read_everything
from tests.chaos.test_kill import PARTITIONS, SETTINGS, TOPIC
from tests.peers.missing import unless_missing


@pytest.mark.timeout(3600)
def test_group_commit_survives_power_cuts(
    start_broker: StartBroker, rng: random.Random, rounds: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    disk = unless_missing(lambda: FaultyDisk.prepare(tmp_path))
    broker = start_broker(overrides=SETTINGS, environment=disk.environment)
    with broker.client() as client:
        configs = {"internal.segment.bytes": "100000", "flush.messages": "1"}
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
            disk.cut_power(broker.data_dir, rng)
            broker.start()
    assert not producers.problems, producers.problems[:5]
    with broker.client() as client:
        found = read_everything(client, TOPIC, PARTITIONS)
    producers.ledger.check(found)
    witness.check(found)
    assert disk.cut_bytes > 0, "no cut took anything away, so nothing was tried"
    print(
        f"{rounds} power cuts took {disk.cut_bytes} bytes and {disk.removed} files; {producers.ledger.count} records "
        f"acknowledged, {witness.seen_count} read on the way"
    )


def test_without_a_sync_a_power_cut_takes_what_was_acknowledged(start_broker: StartBroker, tmp_path: Path) -> None:
    """The counter-proof: the same cut does lose records where nothing asks for a sync, so the cut is a real one."""
    disk = unless_missing(lambda: FaultyDisk.prepare(tmp_path))
    broker = start_broker(environment=disk.environment)
    with broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        assert client.produce(TOPIC, [b"acknowledged, not synced"]).error_code == 0
    broker.kill()

    class Worst(random.Random):
        def choice(self, options):  # type: ignore[no-untyped-def]
            return "none"

    disk.cut_power(broker.data_dir, Worst(0))
    broker.start()
    with broker.client() as client:
        assert client.read_values(TOPIC) == []
        assert client.produce(TOPIC, [b"again"]).base_offset == 0
