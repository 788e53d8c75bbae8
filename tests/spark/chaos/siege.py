"""A query at work, fed steadily, and killed again and again; a supervisor restarts it on its checkpoint.

with Siege(broker, folder, rng, way=SINK) as siege:
    siege.wait_for_progress()
    siege.strike(Strike.DRIVER)
    siege.finish()
assert check(siege.topics, siege.source, siege.targets) == []
"""

import enum
import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tests.peers.sasl_ssl import SecuredListener
from tests.spark.chaos.feeder import Feeder
from tests.spark.chaos.processes import Process, Program, processes_of
from tests.spark.chaos.program import ProgramSettings
from tests.spark.documented_acls import documented_acls
from tests.spark.topics import Topics, wait_until

PROGRESS_SECONDS = 300.0
A_FEW_BATCHES_SECONDS = 1.0
A_START_SECONDS = 12.0
IN_WORK_SHARE = 0.7
SOURCE_PARTITIONS = 2
TARGET_PARTITIONS = 2


class Strike(enum.Enum):
    """What is killed with SIGKILL at a random moment."""

    DRIVER = "the driver with all that it has started"
    DRIVER_ALONE = "the driver alone: its tasks go on for a while"
    USURPED_DRIVER = "no one: the driver is paused, another one takes its place, and then it goes on"
    PYTHON_WORKER = "one Python worker, daemon or runner"
    EXECUTOR = "one executor"
    BROKER = "the broker"
    BROKER_AND_DRIVER = "the broker and the driver"


class Mortal(Protocol):
    """What is killed with Strike.BROKER: a broker, or one of a cluster."""

    @property
    def bootstrap(self) -> str: ...

    def kill(self) -> object: ...

    def start(self) -> object: ...


class Siege:
    """`cluster_sessions`: the system's sessions of a standalone cluster's processes, where its executors are found.
    `listener`: where the query logs in, with the ACLs that it needs and no others."""

    def __init__(
        self,
        broker: Mortal,
        folder: Path,
        rng: random.Random,
        *,
        way: str,
        master: str = "local[2]",
        guarantee: str = "exactly-once",
        cluster_sessions: tuple[int, ...] = (),
        listener: SecuredListener | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.topics = Topics(broker.bootstrap)
        self.source = self.topics.create(partitions=SOURCE_PARTITIONS)
        self.targets = (
            self.topics.create(partitions=TARGET_PARTITIONS),
            self.topics.create(partitions=TARGET_PARTITIONS),
        )
        self.strikes: Counter[Strike] = Counter()
        self.lives = 0
        self._broker = broker
        self._folder = folder
        self._rng = rng
        self._to_come: list[Strike] = []
        self._cluster_sessions = cluster_sessions
        self._settings = ProgramSettings(
            bootstrap=broker.bootstrap,
            source=self.source,
            targets=self.targets,
            checkpoint=str(folder / "checkpoint"),
            way=way,
            guarantee=guarantee,
            master=master,
            client=listener.java if listener is not None else None,
        )
        if listener is not None:
            listener.admit(acl for target in self.targets for acl in documented_acls(SOURCE=self.source, SINK=target))
        self._feeder = Feeder(broker.bootstrap, self.source, SOURCE_PARTITIONS)
        self._program: Program | None = None
        self._usurped: list[Program] = []

    def __enter__(self) -> Self:
        self._start()
        self._feeder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for each in (self._program, *self._usurped):
            if each is not None:
                each.close()
        self._feeder.__exit__(kind, error, traceback)

    # The query

    @property
    def last_batch(self) -> int:
        """The last that Spark has noted as done in the checkpoint."""
        noted = (self._folder / "checkpoint" / "commits").glob("*")
        return max((int(file.name) for file in noted if file.name.isdigit()), default=-1)

    def wait_for_progress(self) -> None:
        """Until a batch is done that was not before. A program that has ended, as a failed query does, is restarted."""
        seen = self.last_batch
        self._wait_for(lambda: self.last_batch > seen, "another batch is done")

    def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        def looked_after() -> bool:
            assert self._program is not None
            if self._program.exit_code is not None:
                self._restart()
            return condition()

        try:
            wait_until(looked_after, what, seconds=PROGRESS_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.end_of_log()}") from None

    def finish(self) -> None:
        """Feed no more, and let the query read to the end. A program that has ended is restarted."""
        self._feeder.finish()
        count = self._feeder.count
        self._wait_for(lambda: self._records_done() >= count, f"all {count} records are done")
        self._close_program()

    def _records_done(self) -> int:
        """As the checkpoint has it."""
        offsets = self._folder / "checkpoint" / "offsets" / str(self.last_batch)
        if not offsets.exists():
            return 0
        (by_topic,) = json.loads(offsets.read_text().splitlines()[2]).values()
        return sum(by_topic.values())

    def end_of_log(self) -> str:
        return self._program.end_of_log() if self._program is not None else ""

    def _start(self) -> None:
        self.lives += 1
        self._program = Program(self._settings.command(), self._folder / f"program-{self.lives}.log")

    def _close_program(self) -> None:
        if self._program is not None:
            self._program.close()

    def _restart(self) -> None:
        self._close_program()
        self._start()

    # What strikes it

    def strike_at_random(self, kinds: tuple[Strike, ...]) -> None:
        """In the midst of its work, or now and then in the midst of what it does first after the last strike.

        The kinds come in an order of rng, each once before one comes again.
        """
        if self._rng.random() < IN_WORK_SHARE:
            self.wait_for_progress()
            longest = A_FEW_BATCHES_SECONDS
        else:
            longest = A_START_SECONDS
        threading.Event().wait(self._rng.uniform(0.0, longest))
        if not self._to_come:
            self._to_come = self._rng.sample(kinds, len(kinds))
        self.strike(self._to_come.pop())

    def report(self, number: int) -> None:
        """A progress line for the long form."""
        struck = ", ".join(f"{kind.name.lower()} {count}" for kind, count in self.strikes.items())
        print(f"round {number + 1}: batch {self.last_batch}, {self.lives} lives of the program; {struck}", flush=True)

    def strike(self, kind: Strike) -> None:
        assert self._program is not None
        self.strikes[kind] += 1
        match kind:
            case Strike.DRIVER:
                self._program.kill()
                self._restart()
            case Strike.DRIVER_ALONE:
                self._program.kill([each for each in self._program.processes() if each.is_driver])
                self._usurped.append(self._program)
                self._start()
            case Strike.USURPED_DRIVER:
                self._usurp()
            case Strike.PYTHON_WORKER:
                self._kill_one([each for each in self._all_processes() if each.is_python_worker])
            case Strike.EXECUTOR:
                self._kill_one([each for each in self._all_processes() if each.is_executor])
            case Strike.BROKER:
                self._broker.kill()
                self._broker.start()
            case Strike.BROKER_AND_DRIVER:
                self._broker.kill()
                self._program.kill()
                self._broker.start()
                self._restart()

    def _usurp(self) -> None:
        old = self._program
        assert old is not None
        self._usurped.append(old)
        paused = old.processes()
        for each in paused:
            each.send(signal.SIGSTOP)
        self._start()
        self.wait_for_progress()
        for each in paused:
            each.send(signal.SIGCONT)
        # The last one to start wins: a driver that was paused before it had begun takes the place of the other one.
        wait_until(lambda: self._one_has_given_up(old), "one of two drivers gives up", seconds=PROGRESS_SECONDS)

    def _one_has_given_up(self, old: Program) -> bool:
        assert self._program is not None
        if self._program.exit_code is not None:
            self._usurped.remove(old)
            self._usurped.append(self._program)
            self._program = old
            return True
        return old.exit_code is not None

    def _all_processes(self) -> list[Process]:
        assert self._program is not None
        found = self._program.processes()
        for session in self._cluster_sessions:
            found += processes_of(session)
        return found

    def _kill_one(self, victims: list[Process]) -> None:
        """Between two tasks there may be none."""
        if victims:
            self._rng.choice(victims).send(signal.SIGKILL)
