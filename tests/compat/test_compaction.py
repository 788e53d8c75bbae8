"""Compaction beside Apache Kafka's: the same log is cleaned to the same batches, and cleaned files go both ways.

Both brokers are given the same bytes under the same settings. What Kafka's cleaner leaves in each segment, ours leaves:
which batches, whether emptied or not, whether marked with a delete horizon, with which records, and in which segments.
"""

import re
import shutil
from collections.abc import Callable

import pytest

from tests.compat.compacted_partition import (
    BROKER_SETTINGS,
    CHECKPOINT,
    PEOPLE,
    TOPIC,
    CompactedPartition,
    Shape,
    shapes,
)
from tests.compat.partition_folder import segments
from tests.compat.scenario import wait_for_leaders
from tests.compat.test_dump_tool import dump
from tests.compat.test_folders import RECOVERY_WORDS, replace_files
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

PASSES = 3
BROKERS: dict[str, Callable[..., BrokerProcess]] = {"kafka": ApacheKafka, "kaspar": KasparProcess}


class Cleaned:
    """A broker that was stopped, and what its partition held after each time it was cleaned."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.passes: list[dict[int, list[Shape]]] = []
        with broker:
            partition = CompactedPartition(broker)
            partition.create()
            for _ in range(PASSES):
                partition.fill()
                partition.compact()
                self.passes.append(shapes(partition.folder))
        self.first_dirty_offset = partition.first_dirty_offset()
        # What it left stays as it is, whatever becomes of the broker.
        self.folder = shutil.copytree(partition.folder, broker.folder / "left" / partition.folder.name)
        self.checkpoint = shutil.copy(broker.data_dir / CHECKPOINT, broker.folder / "left")


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cleaned]:
    unless_missing(kafka_jars)
    folder = tmp_path_factory.mktemp("cleaned")
    return {name: Cleaned(broker(folder / name, overrides=BROKER_SETTINGS)) for name, broker in BROKERS.items()}


@pytest.mark.parametrize("number", range(PASSES))
def test_what_is_left_is_what_kafka_leaves(cleaned: dict[str, Cleaned], number: int) -> None:
    ours, theirs = cleaned["kaspar"].passes[number], cleaned["kafka"].passes[number]
    assert list(ours) == list(theirs), "the segments have other base offsets"
    for base_offset, batches in theirs.items():
        assert ours[base_offset] == batches


def test_the_peers_log_is_worth_the_comparison(cleaned: dict[str, Cleaned]) -> None:
    """Emptied batches, delete horizons, compressed batches with gaps, merged segments: all of it occurred."""
    closed = [list(left.values())[:-1] for left in cleaned["kafka"].passes]
    batches = [batch for left in closed for segment in left for batch in segment]
    assert [batch for batch in batches if not batch.records and not batch.is_control]
    assert [batch for batch in batches if batch.has_delete_horizon and batch.is_control]
    assert [batch for batch in batches if batch.has_delete_horizon and not batch.is_control]
    rewritten = [batch for batch in batches if 0 < len(batch.records) < batch.last_offset - batch.base_offset + 1]
    assert len({batch.codec for batch in rewritten}) > 2
    for left in closed:
        data = [batch for segment in left for batch in segment if not batch.is_control]
        keys = [record[2] for batch in data for record in batch.records]
        assert len(keys) == len(set(keys)) <= PEOPLE


def test_checkpoints_are_alike(cleaned: dict[str, Cleaned]) -> None:
    assert cleaned["kaspar"].first_dirty_offset == cleaned["kafka"].first_dirty_offset > 0


def test_kafkas_dump_tool_finds_nothing_wrong_with_cleaned_files(cleaned: dict[str, Cleaned]) -> None:
    folder = cleaned["kaspar"].folder
    printed = dump(segments(folder), "--deep-iteration", gaps=True)
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)]
    last = cleaned["kaspar"].passes[-1]
    assert offsets == [record[0] for batches in last.values() for batch in batches for record in batch.records]
    assert set(re.findall(r"isvalid: (\w+)", printed)) == {"true"}
    for kind in ("index", "timeindex"):
        files = sorted(folder.glob(f"*.{kind}"))
        assert len(files) == len(segments(folder))
        dump(files, "--verify-index-only")
        dump(files, "--index-sanity-check")
    if aborted := sorted(folder.glob("*.txnindex")):
        dump(aborted)


@pytest.mark.parametrize(("writer", "reader"), [("kaspar", "kafka"), ("kafka", "kaspar")])
def test_a_cleaned_folder_opens_in_the_other_broker(cleaned: dict[str, Cleaned], writer: str, reader: str) -> None:
    """With no recovery, with the writer's word on how far it is clean; and cleaning goes on there."""
    wrote, reads = cleaned[writer], cleaned[reader].broker
    target = reads.data_dir / f"{TOPIC}-0"
    replace_files(wrote.folder, target)
    shutil.copy(wrote.checkpoint, reads.data_dir / CHECKPOINT)
    log_before = len(reads.log_text())
    with reads:
        wait_for_leaders(reads, TOPIC, [0])
        logged = [line for line in reads.log_text()[log_before:].splitlines() if target.name in line]
        assert not [line for line in logged if any(word in line for word in RECOVERY_WORDS[reader])]
        assert shapes(target) == wrote.passes[-1]
        partition = CompactedPartition(reads)
        partition.fill_plainly(40)
        partition.compact()
        assert partition.first_dirty_offset() > wrote.first_dirty_offset
        left = [batch for batches in list(shapes(target).values())[:-1] for batch in batches if not batch.is_control]
        keys = [record[2] for batch in left for record in batch.records]
        assert len(keys) == len(set(keys))
