"""A batch that is repeated, by other executors and in another order, gives the same bytes: state and results."""

import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.records import Record
from kaspar.spark.running.standalone import Cluster
from kaspar.streams.stores.byte_store import Row
from kaspar.streams.stores.disk.ensure import ensure
from tests.peers.kaspar import KasparProcess
from tests.spark.chaos.processes import Program
from tests.spark.programs.repeated_batches_program import DISTURBED, FATAL, RUNS, UNDECIDED, WINDOW_MS, topology
from tests.spark.topics import Message, Stored, Topics

MODULE = "tests.spark.programs.repeated_batches_program"
PARTITIONS = 4
BATCH_SIZE = 200
SECONDS = 250
OUTPUTS = ("results", "windows")
STORES = ("sums", "counts")


@pytest.mark.timeout(SECONDS + 50)
@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=(pytest.mark.long, pytest.mark.timeout(900)))])
def test_a_repeated_batch_is_byte_identical_on_other_executors(
    broker: KasparProcess, topics: Topics, cluster: Cluster, tmp_path: Path, kills: int
) -> None:
    """Executors are killed in the middle of batches, and all of them between the tasks of a batch and its decision.
    Those that repeat the batches have nothing of the state but its changelogs."""
    batches = UNDECIDED + 2 * kills + 1
    messages = _messages(random.Random(kills), batches * BATCH_SIZE, kills)
    events = topics.create(partitions=PARTITIONS)
    topics.produce(events, messages)
    for run in RUNS:
        for output in OUTPUTS:
            topics.create(name=f"{events}-{run}-{output}", partitions=PARTITIONS)
    sessions = ",".join(str(process.pid) for process in cluster.processes)
    arguments = [cluster.master, sessions, broker.bootstrap, str(tmp_path), events, str(BATCH_SIZE), str(batches)]
    with Program([sys.executable, "-m", MODULE, *arguments], tmp_path / "program.log") as program:
        assert program.wait(SECONDS * kills) == 0, program.end_of_log()

    for topic in (*OUTPUTS, *(f"{store}-changelog" for store in STORES)):
        undisturbed, disturbed = (topics.read(f"{events}-{run}-{topic}") for run in RUNS)
        assert [_bytes_of(record) for record in disturbed] == [_bytes_of(record) for record in undisturbed], topic
        written = topics.read(f"{events}-{DISTURBED}-{topic}", isolation_level="read_uncommitted")
        assert len(written) > len(disturbed), "an attempt was aborted"
    for partition in range(PARTITIONS):
        undisturbed_state, state = (_state(topics, f"{events}-{run}", tmp_path, partition) for run in RUNS)
        assert state == undisturbed_state
        assert all(state.values())
    assert len(topics.read(f"{events}-{DISTURBED}-results")) == len(messages)

    once, repeated = (_executors(tmp_path / run / "calls") for run in RUNS)
    assert {len(executors) for executors in once.values()} == {1}
    moved = {value for value, executors in repeated.items() if len({*executors}) > 1}
    assert {value for value in repeated if value.startswith(FATAL)} <= moved
    assert len(moved) >= BATCH_SIZE, "the batch that was not decided was repeated by others"


def _messages(rng: random.Random, count: int, kills: int) -> list[Message]:
    """Every source partition has all keys, and its times go back now and then, so that some records are late."""
    now_ms = time.time_ns() // 1_000_000
    fatal = {BATCH_SIZE * (UNDECIDED + 2 * number + 1) + BATCH_SIZE // 2 for number in range(kills)}
    return [
        Message(
            f"{FATAL if number in fatal else 'value'}-{number}".encode(),
            key=f"key-{rng.randrange(30)}".encode(),
            partition=number % PARTITIONS,
            timestamp_ms=now_ms + number * 10 - rng.choice([0, 0, 15, 40, WINDOW_MS]),
        )
        for number in range(count)
    ]


def _bytes_of(record: Stored) -> tuple[object, ...]:
    """All but the offset: the attempts that were aborted have taken some."""
    return record.partition, record.key, record.value, record.headers, record.timestamp


def _state(topics: Topics, name: str, folder: Path, partition: int) -> dict[str, list[Row]]:
    """All rows of the stores, from the disk of an executor that has their last version: no changelog is read."""
    changelogs = {store: topics.read(f"{name}-{store}-changelog") for store in STORES}
    ends = {
        store: max(record.offset for record in records if record.partition == partition) + 1
        for store, records in changelogs.items()
    }
    (plan,) = topology("events", name, folder, is_disturbed=False).sub_topologies
    for directory in folder.glob(f"cluster/work/*/*/state/{name}/state/*/*/{partition}"):
        try:
            with ensure(directory, partition, plan.stores, ends, _NoChangelog()) as state:
                return {store: list(state.snapshot(store).range(None, None)) for store in STORES}
        except _NotOnDisk:
            continue
    pytest.fail(f"no executor has the last version of partition {partition}")


class _NotOnDisk(KasparError):
    pass


class _NoChangelog:
    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        raise _NotOnDisk(store)


def _executors(calls: Path) -> dict[str, list[str]]:
    """Where each record was processed."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in calls.read_text().splitlines():
        value, _, executor = line.partition(" ")
        found[value].append(executor)
    return found
