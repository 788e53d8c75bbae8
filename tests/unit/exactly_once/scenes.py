"""Runs of a query against the model of a cluster, step by step: what tests of crashes are made of."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count

from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.decisions import DecidedTransaction
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.publishing import publish
from tests.property.exactly_once_model import Cluster, Killed, ModelCoordinator, ModelLog, ModelProcess

QUERY = "query"
TASKS = 3
MOST_STEPS = 200


class Run:
    """A driver with its workers; all of them in processes of their own."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.worker = cluster.process(f"{name}-worker")
        self.committer = cluster.process(f"{name}-committer")

    def batch(self, batch_id: int) -> BatchName:
        return BatchName(QUERY, self.name, batch_id)

    def begin(self, batch_id: int, task: int, worker: ModelProcess | None = None) -> Attempt | None:
        """An attempt that has written its rows."""
        worker = worker or self.worker
        attempt = Attempt.begin(worker.participants, worker.slots, self.batch(batch_id))
        if attempt is not None:
            worker.write(attempt.transactional_id, attempt.producer, (batch_id, task))
        return attempt

    def write(self, batch_id: int) -> list[DecidedTransaction]:
        """All tasks of a batch, up to their messages."""
        written = []
        for task in range(TASKS):
            if (attempt := self.begin(batch_id, task)) is not None:
                attempt.prepare()
                written.append(decided(attempt, task))
        return written

    def commit(self, batch_id: int, written: list[DecidedTransaction]) -> None:
        publish(self.committer.participants, self.batch(batch_id), written)

    def go(self, *batch_ids: int) -> None:
        for batch_id in batch_ids:
            self.commit(batch_id, self.write(batch_id))


@dataclass
class DriverProcess:
    """What exactly_once/process_state.py keeps, for a driver against the model."""

    model: ModelProcess
    announced: set[str] = field(default_factory=set)

    def cluster_id(self) -> str:
        return "model"

    @property
    def participants(self) -> Participants:
        return self.model.participants

    @property
    def coordinator(self) -> ModelCoordinator:
        return self.model.participants.coordinator  # type: ignore[return-value]

    @property
    def log(self) -> ModelLog:
        return self.model.participants.log  # type: ignore[return-value]


def dead_after_its_decision(run: Run, batch_id: int, written: list[DecidedTransaction]) -> Run:
    """A copy of the run and its cluster, killed when its decision was in the log and nothing was committed yet."""
    for step in range(MOST_STEPS):
        dead = deepcopy(run)
        is_killed(dead.committer, step, lambda run=dead: run.commit(batch_id, written))  # type: ignore[misc]
        dead.cluster.on_their_way.clear()
        pending = dead.cluster.process("reader").participants.log.read_to_end(QUERY).pending
        if pending is not None and pending.batch == run.batch(batch_id):
            return dead
    raise AssertionError("it never decides")


def decided(attempt: Attempt, task: int) -> DecidedTransaction:
    return DecidedTransaction(attempt.transactional_id, attempt.producer, task, ("orders",))


def published(*batch_ids: int) -> Counter[tuple[int, int]]:
    return Counter({(batch_id, task) for batch_id in batch_ids for task in range(TASKS)})


def killed_at_every_step(scene: Callable[[int], bool]) -> None:
    """Play the scene again and again, each time with the kill one step later, until there is nothing left to be killed.
    A scene says whether it was."""
    for step in count():
        assert step < MOST_STEPS, "the scene has no end"
        if not scene(step):
            return


def is_killed(process: ModelProcess, step: int, act: Callable[[], object]) -> bool:
    """Whether the process was killed in what it did, at that step of it."""
    process.fuse.left = step
    try:
        act()
    except Killed:
        return True
    finally:
        process.fuse.left = -1
    return False
