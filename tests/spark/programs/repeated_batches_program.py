"""One program with state, run twice on one input: undisturbed, and with batches that are repeated on other executors.

Every executor has a state folder of its own, below its working folder, as if each had a disk of its own. `calls` in the
folder of a run has a line for each call of the aggregator: the record, and the folder of the executor.
"""

import os
import signal
import sys
import zlib
from pathlib import Path
from typing import Any
from unittest import mock

import kaspar.spark
from kaspar.base.errors import KasparError
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.publishing import publish
from kaspar.spark.exactly_once import foreach_batch
from kaspar.streams import KafkaStreams, StreamsBuilder, TimeWindows, Topology
from tests.spark.chaos.processes import ROOT, processes_of
from tests.spark.programs.apps import TIMEOUT_SECONDS
from tests.spark.topics import wait_until

UNDISTURBED, DISTURBED = RUNS = "undisturbed", "disturbed"
FATAL = "fatal"
"""In the disturbed run the executor that processes a record with such a value is killed by it, once for each record."""
UNDECIDED = 1
"""The batch whose tasks have finished when, in the disturbed run, all executors are killed and its decision fails."""
WINDOW_MS = 1_000
SPARK = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.sql.session.timeZone": "UTC",
}


def topology(events: str, name: str, folder: Path, *, is_disturbed: bool) -> Topology:
    """Sums depend on the order of all records of a key, and windows without grace on that of a partition."""

    def add(key: str, value: str, total: str) -> str:
        with (folder / "calls").open("a") as calls:
            calls.write(f"{value} {Path.cwd()}\n")
        if is_disturbed and value.startswith(FATAL) and _is_first(folder / value):
            kill_executors(os.getsid(0))
        return f"{zlib.crc32(value.encode(), int(total or '0', 16)):08x}"

    builder = StreamsBuilder()
    grouped = builder.stream(events).group_by_key()
    grouped.aggregate(str, add, "sums").to_stream().to(f"{name}-results")
    windows = grouped.windowed_by(TimeWindows.of_size(WINDOW_MS).grace(0))
    windows.count("counts").to_stream().to(f"{name}-windows")
    return builder.build()


def _is_first(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def kill_executors(*sessions: int) -> None:
    for session in sessions:
        for process in processes_of(session):
            if process.is_executor:
                process.send(signal.SIGKILL)


def run(topology: Topology, bootstrap: str, name: str, batch_size: int, batches: int) -> None:
    settings = {
        "application.id": name,
        "bootstrap.servers": bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "state.dir": "/proc/self/cwd/state",
        "replication.factor": 1,
        "max.offsets.per.trigger": batch_size,
    }
    last_batch = Path("state", name, "checkpoints/0/commits", str(batches - 1))
    with KafkaStreams(topology, settings):
        wait_until(last_batch.exists, f"{name} is done", seconds=TIMEOUT_SECONDS + 10 * batches)


def main(master: str, sessions: str, bootstrap: str, folder: str, events: str, batch_size: str, batches: str) -> None:
    """`sessions` are those of the processes of the cluster."""
    os.chdir(folder)
    kaspar.spark.session("repeated batches", master, SPARK)

    def publish_or_fail(participants: Participants, batch: BatchName, *more: Any, **named: Any) -> None:
        if batch.batch_id == UNDECIDED and _is_first(Path(folder, DISTURBED, "undecided")):
            kill_executors(*map(int, sessions.split(",")))
            raise KasparError("the decision fails")
        publish(participants, batch, *more, **named)

    for name in RUNS:
        (own := Path(folder, name)).mkdir()
        is_disturbed = name == DISTURBED
        program = topology(events, f"{events}-{name}", own, is_disturbed=is_disturbed)
        with mock.patch.object(foreach_batch, "publish", publish_or_fail if is_disturbed else publish):
            run(program, bootstrap, f"{events}-{name}", int(batch_size), int(batches))


if __name__ == "__main__":
    main(*sys.argv[1:])
