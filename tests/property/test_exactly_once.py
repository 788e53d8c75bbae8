"""The exactly-once protocol, whole, against a model of a cluster: whatever is killed at whichever step, a batch is
published once, all of it or nothing, and in the end nothing is left open.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kaspar.base.errors import KasparError
from kaspar.exactly_once import decisions
from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.decisions import DecidedTransaction, QueryState
from kaspar.exactly_once.leftovers import finish_for_others
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.ownership import take_over
from kaspar.exactly_once.publishing import abort_batch, publish
from tests.property.exactly_once_model import Cluster, Killed, ModelProcess

QUERY = "query"
TASKS = 2
WORKERS = 2
steps = st.one_of(st.just(-1), st.integers(0, 16))
"""At which step a process is killed; -1: it is not."""
_AFTER_THE_CLAIM = 3
"""Of an attempt in a new process: two looks at the log, and the append of the claim; its response is lost."""
drivers = st.sampled_from([-1, -1, -1, -2, -3])
"""The newest, or one from before it."""
workers = st.integers(0, WORKERS - 1)
tasks = st.integers(0, TASKS - 1)


@dataclass
class Driver:
    """A driver of Spark: several may run at once, on the same checkpoint."""

    run: str
    batch_id: int
    committer: ModelProcess
    chosen: dict[int, DecidedTransaction | None] = field(default_factory=dict)
    is_alive: bool = True

    @property
    def batch(self) -> BatchName:
        return BatchName(QUERY, self.run, self.batch_id)


class Begun(NamedTuple):
    """An attempt of a task that has written its rows."""

    driver: Driver
    batch: BatchName
    task: int
    worker: ModelProcess
    attempt: Attempt


class ExactlyOnceMachine(RuleBasedStateMachine):
    @initialize(owners_kept=st.sampled_from([2, decisions.OWNERS_KEPT]))
    def start(self, owners_kept: int) -> None:
        """Also where a run is forgotten soon, so that one comes back which the log does not know any more."""
        self.forgetting = patch.object(decisions, "OWNERS_KEPT", owners_kept)
        self.forgetting.start()
        self.cluster = Cluster()
        self.committed = -1
        """The last batch in Spark's own log of commits."""
        self.names = iter(range(1 << 30))
        self.observer = self.new_process()
        self.workers = [self.new_process() for _ in range(WORKERS)]
        self.drivers = [self.new_driver()]
        self.begun: list[Begun] = []

    def new_driver(self) -> Driver:
        return Driver(f"run{next(self.names)}", self.committed + 1, self.new_process())

    def driver(self, which: int) -> Driver:
        return self.drivers[max(which, -len(self.drivers))]

    def new_process(self) -> ModelProcess:
        return self.cluster.process(f"w{next(self.names)}")

    # --- what Spark does ----------------------------------------------------------------------------------------------

    @rule()
    def start_a_driver(self) -> None:
        """The ones before it go on: nobody stops them."""
        self.drivers.append(self.new_driver())

    @rule(worker=workers)
    def start_a_worker(self, worker: int) -> None:
        self.workers[worker] = self.new_process()

    @rule(driver=drivers, worker=workers, task=tasks, killed_at=steps)
    def begin_an_attempt(self, driver: int, worker: int, task: int, killed_at: int) -> None:
        """Also a zombie's: of a driver that is long gone, or of a task that is done."""
        self.begin(self.driver(driver), self.workers[worker], task, killed_at)

    def begin(self, driver: Driver, worker: ModelProcess, task: int, killed_at: int) -> Begun | None:
        worker.fuse.left = killed_at
        batch = driver.batch
        try:
            attempt = Attempt.begin(worker.participants, worker.slots, batch)
            if attempt is None:
                driver.chosen.setdefault(task, None)
                return None
            worker.write(attempt.transactional_id, attempt.producer, (batch.batch_id, task))
        except (Killed, KasparError):
            return None
        finally:
            worker.fuse.left = -1
        self.begun.append(Begun(driver, batch, task, worker, attempt))
        return self.begun[-1]

    @rule(data=st.data(), killed_at=steps)
    def finish_an_attempt(self, data: st.DataObject, killed_at: int) -> None:
        if self.begun:
            self.finish(data.draw(st.sampled_from(self.begun)), killed_at)

    def finish(self, begun: Begun, killed_at: int) -> None:
        self.begun.remove(begun)
        driver, batch, task, worker, attempt = begun
        worker.fuse.left = killed_at
        try:
            attempt.prepare()
        except (Killed, KasparError):
            return
        finally:
            worker.fuse.left = -1
        if driver.is_alive and driver.batch == batch and task not in driver.chosen:
            driver.chosen[task] = DecidedTransaction(attempt.transactional_id, attempt.producer, task, ("topic",))

    @rule(driver=drivers, worker=workers)
    def write_a_batch(self, driver: int, worker: int) -> None:
        """All tasks that are not done yet, in one worker."""
        self.write(self.driver(driver), self.workers[worker])

    def write(self, driver: Driver, worker: ModelProcess) -> None:
        for task in range(TASKS):
            if driver.is_alive and task not in driver.chosen and (begun := self.begin(driver, worker, task, -1)):
                self.finish(begun, -1)

    @rule(driver=drivers, worker=workers, killed_at=steps, gives_up=st.booleans(), other_process=st.booleans())
    def write_and_commit_a_batch(
        self, driver: int, worker: int, killed_at: int, gives_up: bool, other_process: bool
    ) -> None:
        self.write(self.driver(driver), self.workers[worker])
        self.publish(self.driver(driver), killed_at, gives_up, other_process)

    @rule(driver=drivers, killed_at=steps, gives_up=st.booleans(), other_process=st.booleans())
    def commit_a_batch(self, driver: int, killed_at: int, gives_up: bool, other_process: bool) -> None:
        self.publish(self.driver(driver), killed_at, gives_up, other_process)

    @rule(killed_at=st.integers(0, 8), runs=st.sampled_from([0, 1, 3, decisions.OWNERS_KEPT + 1]))
    def a_driver_dies_in_its_commit_and_so_does_every_run_after_it(self, killed_at: int, runs: int) -> None:
        """As where a coordinator is away, or a decision cannot be carried out and the query is started again and again:
        each run claims the query, and comes no further."""
        self.start_a_driver()
        self.write(self.drivers[-1], self.new_process())
        self.publish(self.drivers[-1], killed_at, False, False)
        for _ in range(runs):
            self.begin(self.new_driver(), self.new_process(), 0, _AFTER_THE_CLAIM)

    @rule(worker=workers, batches=st.integers(1, 3))
    def run_for_a_while(self, worker: int, batches: int) -> None:
        """A new driver, of which nothing is killed."""
        self.start_a_driver()
        for _ in range(batches):
            self.write(self.drivers[-1], self.workers[worker])
            self.publish(self.drivers[-1], -1, False, False)

    def publish(self, driver: Driver, killed_at: int, gives_up: bool, other_process: bool) -> None:
        if not driver.is_alive or len(driver.chosen) < TASKS:
            return
        if other_process:
            driver.committer = self.new_process()
        driver.committer.fuse.left = killed_at
        transactions = [each for each in driver.chosen.values() if each is not None]
        try:
            publish(driver.committer.participants, driver.batch, transactions)
        except (Killed, KasparError):
            driver.is_alive = False
            if gives_up:
                self.abort(driver, killed_at)
            return
        finally:
            driver.committer.fuse.left = -1
        if self.committed >= driver.batch_id:
            driver.is_alive = False  # Spark finds the batch in its log: "multiple streaming jobs detected"
            return
        self.committed = driver.batch_id
        driver.batch_id += 1
        driver.chosen = {}

    def abort(self, driver: Driver, killed_at: int) -> None:
        """Spark aborts a batch whose commit failed, in any process."""
        process = self.new_process()
        process.fuse.left = killed_at
        try:
            abort_batch(process.participants, driver.batch)
        except (Killed, KasparError):
            return

    @rule(driver=drivers, killed_at=steps)
    def fail_a_batch(self, driver: int, killed_at: int) -> None:
        failed = self.driver(driver)
        if failed.is_alive and failed.chosen:
            failed.is_alive = False
            self.abort(failed, killed_at)

    # --- what happens to the cluster ----------------------------------------------------------------------------------

    @rule(data=st.data())
    def a_transaction_times_out(self, data: st.DataObject) -> None:
        if names := self.cluster.open_ids():
            self.cluster.time_out(data.draw(st.sampled_from(sorted(names))))

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        """At any point of the log; often all of it."""
        end = self.cluster.next_offset
        self.cluster.compact(data.draw(st.one_of(st.just(end), st.integers(0, end))))

    @rule(data=st.data(), lands=st.booleans())
    def an_append_arrives_late(self, data: st.DataObject, lands: bool) -> None:
        if self.cluster.on_their_way:
            index = data.draw(st.integers(0, len(self.cluster.on_their_way) - 1))
            records = self.cluster.on_their_way.pop(index)
            if lands:
                self.cluster.store(records)

    @rule(killed_at=steps)
    def another_query_carries_out_what_is_decided(self, killed_at: int) -> None:
        process = self.new_process()
        process.fuse.left = killed_at
        with suppress(Killed):
            finish_for_others(process.participants)

    @rule(killed_at=steps)
    def the_command_ends_what_is_left(self, killed_at: int) -> None:
        process = self.new_process()
        process.fuse.left = killed_at
        try:
            take_over(
                process.participants,
                QUERY,
                f"command {process.slots.worker}",
                process.participants.log.read_to_end(QUERY),
            )
        except Killed:
            return

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_visible_twice(self) -> None:
        assert all(count == 1 for count in self.cluster.visible.values()), self.cluster.visible

    @invariant()
    def what_spark_has_committed_is_visible(self) -> None:
        expected = {(batch_id, task) for batch_id in range(self.committed + 1) for task in range(TASKS)}
        assert expected <= self.cluster.visible.keys()

    @invariant()
    def a_compacted_log_replays_to_the_same_state(self) -> None:
        all_along = self.observer.participants.log.read_to_end(QUERY)
        afresh = self.new_process().participants.log.read_to_end(QUERY)
        assert (all_along.in_force, all_along.pending) == (afresh.in_force, afresh.pending)
        assert _last_batch(all_along) == _last_batch(afresh)

    def teardown(self) -> None:
        """A last run, of which nothing is killed, finds and ends all that is left."""
        if not hasattr(self, "cluster"):
            return
        try:
            self.finish_all()
        finally:
            self.forgetting.stop()

    def finish_all(self) -> None:
        last = self.new_driver()
        self.write(last, self.new_process())
        self.publish(last, -1, False, False)
        for begun in list(self.begun):  # zombies
            self.finish(begun, -1)
        for name in self.cluster.open_ids():
            self.cluster.time_out(name)
        assert self.committed == last.batch_id - 1, "the last run has published its batch"
        assert not self.cluster.open_ids()
        everything = {(batch_id, task) for batch_id in range(self.committed + 1) for task in range(TASKS)}
        assert self.cluster.visible == Counter(everything)


def _last_batch(state: QueryState) -> int | None:
    return None if state.last is None else state.last.batch.batch_id


ExactlyOnceMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
test_exactly_once = ExactlyOnceMachine.TestCase
