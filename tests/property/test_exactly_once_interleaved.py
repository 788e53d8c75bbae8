"""The exactly-once protocol with drivers, tasks and the command at work at the same time: every order of their steps.

Each actor is a thread that waits before every step until the test lets it go on, or kills it there. So one runs at a
time, and the seed decides which.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import KasparError
from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.decisions import DecidedTransaction
from kaspar.exactly_once.leftovers import end_leftovers, finish_for_others
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.ownership import release
from kaspar.exactly_once.publishing import abort_batch, publish
from tests.property.exactly_once_model import Cluster, Fuse, Killed, ModelProcess

QUERY = "query"
TASKS = 2
BATCHES = 3
_TIMEOUT_S = 30.0


class Actor(Fuse):
    """Something that happens in a thread of its own, one step at a time, on request."""

    def __init__(self, act: Callable[["Actor"], None]) -> None:
        super().__init__()
        self.is_done = False
        self.problem: BaseException | None = None
        self._is_killed = False
        self._may_go_on = threading.Semaphore(0)
        self._has_paused = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(act,), daemon=True)
        self._thread.start()

    def step(self) -> None:
        self._has_paused.release()
        assert self._may_go_on.acquire(timeout=_TIMEOUT_S)
        if self._is_killed:
            raise Killed

    def go_on(self, *, kill: bool = False) -> None:
        self._is_killed = self._is_killed or kill
        self._may_go_on.release()
        self.wait()

    def wait(self) -> None:
        """Until it stands before its next step, or has ended."""
        assert self._has_paused.acquire(timeout=_TIMEOUT_S)

    def _run(self, act: Callable[["Actor"], None]) -> None:
        try:
            self.step()
            act(self)
        except (Killed, KasparError):
            pass
        except BaseException as problem:
            self.problem = problem
        self.is_done = True
        self._has_paused.release()


class Story:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.committed = -1
        """The last batch in Spark's own log of commits."""
        self.running: dict[str, int] = {}
        """The batch that each run is at."""

    def drive(self, run: str) -> Callable[[Actor], None]:
        """A driver and its tasks, from the first batch that is not in Spark's log."""

        def act(actor: Actor) -> None:
            worker = self.cluster.process(f"{run}-worker", actor)
            committer = self.cluster.process(f"{run}-committer", actor)
            for batch_id in range(self.committed + 1, BATCHES):
                self.running[run] = batch_id
                batch = BatchName(QUERY, run, batch_id)
                try:
                    written = [self.attempt(worker, batch, task) for task in range(TASKS)]
                    publish(committer.participants, batch, [each for each in written if each is not None])
                except KasparError:
                    abort_batch(committer.participants, batch)
                    raise
                if self.committed >= batch_id:
                    return  # Spark finds the batch in its log, and stops
                self.committed = batch_id

        return act

    def attempt(self, worker: ModelProcess, batch: BatchName, task: int) -> DecidedTransaction | None:
        attempt = Attempt.begin(worker.participants, worker.slots, batch)
        if attempt is None:
            return None
        worker.write(attempt.transactional_id, attempt.producer, (batch.batch_id, task))
        attempt.prepare()
        return DecidedTransaction(attempt.transactional_id, attempt.producer, task, ("topic",))

    def speculate(self, run: str) -> Callable[[Actor], None]:
        """Another attempt of a task, which nobody waits for."""

        def act(actor: Actor) -> None:
            worker = self.cluster.process(f"{run}-speculative-{id(actor)}", actor)
            self.attempt(worker, BatchName(QUERY, run, self.running.get(run, 0)), 0)

        return act

    def end_by_hand(self, actor: Actor) -> None:
        end_leftovers(self.cluster.process(f"command-{id(actor)}", actor).participants, QUERY)

    def release_by_hand(self, actor: Actor) -> None:
        release(self.cluster.process(f"release-{id(actor)}", actor).participants, QUERY)

    def is_released(self) -> bool:
        origin = self.cluster.process("reader").participants.log.read_to_end(QUERY).origin
        return origin is not None and origin.is_released

    def check_whole(self) -> None:
        """What was decided before the name was released is complete, and nothing else is published."""
        for batch_id in range(BATCHES):
            assert sum(self.cluster.visible[batch_id, task] for task in range(TASKS)) in (0, TASKS)

    def finish(self, actor: Actor) -> None:
        """Another query's run, which carries out whatever it finds decided."""
        finish_for_others(self.cluster.process(f"other-{id(actor)}", actor).participants)

    def check(self) -> None:
        assert all(count == 1 for count in self.cluster.visible.values()), self.cluster.visible
        expected = {(batch_id, task) for batch_id in range(self.committed + 1) for task in range(TASKS)}
        assert expected <= self.cluster.visible.keys()

    def last_run(self) -> None:
        actor = Actor(self.drive("last"))
        actor.wait()
        while not actor.is_done:
            actor.go_on()
        assert actor.problem is None
        self.check()
        for name in self.cluster.open_ids():
            self.cluster.time_out(name)
        assert not self.cluster.open_ids()
        assert self.cluster.visible == Counter((batch, task) for batch in range(BATCHES) for task in range(TASKS))


@settings(max_examples=250, deadline=None)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_every_batch_is_published_once_whichever_processes_die(seed: int) -> None:
    rng = random.Random(seed)
    story = Story()
    plots = [story.drive("one"), story.drive("two"), story.speculate("one"), story.speculate("two")]
    plots += [story.end_by_hand] * (rng.random() < 0.3)
    plots += [story.release_by_hand] * (rng.random() < 0.3)
    plots += [story.finish] * rng.randrange(4)
    kills = rng.choice([0.0, 0.02])
    actors = [Actor(plot) for plot in plots]
    for actor in actors:
        actor.wait()
    while alive := [actor for actor in actors if not actor.is_done]:
        actor = rng.choice(alive)
        is_killed = rng.random() < kills
        for _ in range(rng.choice([1, 2, 5, 20])):
            if not actor.is_done:
                actor.go_on(kill=is_killed)
        assert actor.problem is None, actor.problem
        story.check()
    while story.cluster.on_their_way:
        story.cluster.store(story.cluster.on_their_way.pop())
    if story.is_released():
        story.check_whole()
    elif story.committed < BATCHES - 1:
        story.last_run()
