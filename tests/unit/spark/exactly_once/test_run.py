"""Batch.run: a program in the tasks of a block, whose rows are published with the block, once."""

import pickle
from typing import Any

import pytest
from pyspark.sql import Row

from kaspar.exactly_once.attempt import Attempt
from kaspar.spark.exactly_once.foreach_batch import Batch
from kaspar.spark.exactly_once.task import TaskWritten
from tests.property.exactly_once_model import Cluster
from tests.unit.exactly_once.scenes import decided
from tests.unit.spark.exactly_once.programs import Program


class Tasks:
    """Stands where a DataFrame does. Each task writes a row in a transaction and returns its number; `lost` of them are
    attempted twice, because their programs failed after everything was stored."""

    def __init__(self, cluster: Cluster, batch: Batch, count: int = 2, *, lost: int = 0, fails: bool = False) -> None:
        self.cluster, self.batch, self.count, self.lost, self.fails = cluster, batch, count, lost, fails
        self.attempts = 0

    def mapInArrow(self, run: object, schema: str) -> Any:  # noqa: N802
        assert schema == "message binary, result binary"
        return self

    def collect(self) -> list[Row]:
        for task in range(self.lost):
            self.attempt(task)
        if self.fails:
            raise RuntimeError("the job fails")
        return [self.report(task) for task in range(self.count)]

    def report(self, task: int) -> Row:
        message = TaskWritten(self.batch.name, 1, decided(self.attempt(task), task))
        return Row(message=pickle.dumps(message), result=b"%d" % task)

    def attempt(self, task: int) -> Attempt:
        self.attempts += 1
        worker = self.cluster.process(f"worker {self.attempts} of {self.batch.name.claim}")
        attempt = Attempt.begin(worker.participants, worker.slots, self.batch.name)
        assert attempt is not None
        worker.write(attempt.transactional_id, attempt.producer, (self.batch.name.batch_id, task))
        attempt.prepare()
        return attempt


PROGRAM: Any = object()  # the tasks above do without it


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def run(cluster: Cluster, run_id: str, batch_id: int = 0, **how: Any) -> tuple[list[bytes] | None, int]:
    """What the program's tasks returned, and how often they ran."""
    with Program(cluster, run_id).block(batch_id) as batch:
        tasks: Any = Tasks(cluster, batch, **how)
        return batch.run(tasks, PROGRAM), tasks.attempts


def test_results_come_back_and_rows_are_published_when_the_block_ends(cluster: Cluster) -> None:
    with Program(cluster, "run").block(0) as batch:
        tasks: Any = Tasks(cluster, batch)
        assert batch.run(tasks, PROGRAM) == [b"0", b"1"]
        assert not cluster.visible
    assert dict(cluster.visible) == {(0, 0): 1, (0, 1): 1}


def test_nothing_runs_for_a_batch_that_is_published(cluster: Cluster) -> None:
    run(cluster, "first")
    assert run(cluster, "second") == (None, 0)
    assert dict(cluster.visible) == {(0, 0): 1, (0, 1): 1}


def test_a_program_and_plain_writes_share_a_decision(cluster: Cluster) -> None:
    program = Program(cluster, "run")
    with program.block(0) as batch:
        tasks: Any = Tasks(cluster, batch)
        batch.run(tasks, PROGRAM)
        program.write(batch, "new")
        assert not cluster.visible
    assert dict(cluster.visible) == {(0, 0): 1, (0, 1): 1, (0, 2): 1}


def test_what_an_attempt_wrote_whose_program_failed_at_the_end_is_aborted(cluster: Cluster) -> None:
    assert run(cluster, "run", lost=1) == ([b"0", b"1"], 3)
    assert dict(cluster.visible) == {(0, 0): 1, (0, 1): 1}
    assert not cluster.open_ids()


def test_a_job_that_fails_leaves_nothing_open(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError, match="the job fails"):
        run(cluster, "run", lost=2, fails=True)
    assert not cluster.visible
    assert not cluster.open_ids()
