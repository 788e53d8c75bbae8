"""A query at work, fed steadily, and struck down again and again; a supervisor starts it anew on its checkpoint.

with Siege(broker, folder, chance, way=SINK) as siege:
    siege.wait_for_progress()
    siege.strike(Strike.DRIVER)
    siege.finish()
assert check(siege.topics, siege.source, siege.targets) == []
"""

import dataclasses
import enum
import random
import signal
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.process import BrokerProcess
from tests.spark.chaos.feeder import Feeder
from tests.spark.chaos.processes import Process, Program, processes_of
from tests.spark.chaos.program import ProgramSettings
from tests.spark.topics import Topics, wait_until

PROGRESS_SECONDS = 300.0
ALL_OF_IT = 10_000_000  # rows, in the last batch
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


class Siege:
    """`cluster_sessions`: the system's sessions of a standalone cluster's processes, where its executors are found."""

    def __init__(
        self,
        broker: BrokerProcess,
        folder: Path,
        chance: random.Random,
        *,
        way: str,
        master: str = "local[2]",
        guarantee: str = "exactly-once",
        cluster_sessions: tuple[int, ...] = (),
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
        self._chance = chance
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
        )
        self._feeder = Feeder(broker.bootstrap, self.source, SOURCE_PARTITIONS)
        self._program: Program | None = None
        self._usurped: list[Program] = []
        self._seen_batch = -1

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
        self._seen_batch = self.last_batch

        def looked_after() -> bool:
            assert self._program is not None
            if self._program.exit_code is not None:
                self._restart()
            return self.last_batch > self._seen_batch

        try:
            wait_until(looked_after, "another batch is done", seconds=PROGRESS_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.end_of_log()}") from None

    def finish(self) -> None:
        """Feed no more, and let the query read to the end."""
        self._feeder.finish()
        self._close_program()
        settings = dataclasses.replace(self._settings, drain=True, rows_in_a_batch=ALL_OF_IT)
        with self._launch(settings) as last:
            code = last.wait(PROGRESS_SECONDS)
            assert code == 0, f"the query ended with code {code}:\n{last.end_of_log()}"

    def end_of_log(self) -> str:
        return self._program.end_of_log() if self._program is not None else ""

    def _start(self) -> None:
        self._program = self._launch(self._settings)

    def _launch(self, settings: ProgramSettings) -> Program:
        self.lives += 1
        return Program(settings.command(), self._folder / f"program-{self.lives}.log")

    def _close_program(self) -> None:
        if self._program is not None:
            self._program.close()

    def _restart(self) -> None:
        self._close_program()
        self._start()

    # What strikes it

    def strike_at_random(self, kinds: tuple[Strike, ...]) -> None:
        """In the midst of its work, or now and then in the midst of what it does first after the last strike.

        The kinds come in an order of chance, each once before one comes again.
        """
        if self._chance.random() < IN_WORK_SHARE:
            self.wait_for_progress()
            longest = A_FEW_BATCHES_SECONDS
        else:
            longest = A_START_SECONDS
        threading.Event().wait(self._chance.uniform(0.0, longest))
        if not self._to_come:
            self._to_come = self._chance.sample(kinds, len(kinds))
        self.strike(self._to_come.pop())

    def tell(self, number: int) -> None:
        """A line for whoever watches the long form."""
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
        # It goes by who came last: a driver that was paused before it had begun takes the place of the other one.
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
            self._chance.choice(victims).send(signal.SIGKILL)
