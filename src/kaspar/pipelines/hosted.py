"""One program of a host: runs it in a thread until it has finished or is stopped.

A program that raises is executed again after a delay that grows while it keeps failing soon. Failures of the queries of
its pipeline are not handled here: `runner` restarts those.
"""

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kaspar.base.log import get_log
from kaspar.pipelines.ambient import HOST
from kaspar.pipelines.folder import Definition, Folder, Seen
from kaspar.pipelines.messages import LONGEST_DESCRIPTION
from kaspar.pipelines.modules import ModulesChanged
from kaspar.pipelines.output import PipelineLog
from kaspar.pipelines.pipeline import Pipeline, PipelineProgress
from kaspar.pipelines.programs import Loader
from kaspar.pipelines.reasons import reason_of
from kaspar.pipelines.runner import Change, PipelineRunner
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, QueryStatus, State
from kaspar.supervisor.back_off import BackOff
from kaspar.supervisor.child import roll_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log(__name__)
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class HostContext:
    """What a host provides to each of its programs. `lost` returns how the session ended, if it has. `changed` is
    called after every change of a state, `renew` when the program needs another process."""

    folder: Folder
    session: "SparkSession"
    loader: Loader
    lost: Callable[[], str | None]
    changed: Callable[[], None]
    renew: Callable[[str], None]


class HostedProgram:
    def __init__(self, name: str, definition: Definition, context: HostContext, status: PipelineStatus) -> None:
        """`status`: the initial status, with the restarts and the reason from an earlier host."""
        self.name = name
        self.generation = definition.generation
        self._definition = definition
        self._context = context
        self._status = status
        self._pipeline: Pipeline | None = None
        self._progress = PipelineProgress()
        self._stop = threading.Event()
        self._state_when_stopped = State.STOPPED
        self._thread = threading.Thread(target=self._run, name=f"kaspar-pipeline-{name}", daemon=True)

    def start(self) -> None:
        roll_log(self._context.folder.log(self.name))
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def state(self) -> State:
        return self._status.state

    def request_stop(self, state: State) -> None:
        """Request a stop, without waiting for it. `state` is the program's state once it has stopped."""
        if not self._stop.is_set():
            self._state_when_stopped = state
            self._stop.set()

    # -- what it reports -----------------------------------------------------------------------------------------------

    def sample(self) -> None:
        """Read the pipeline's progress. Not done for every request, because it calls the JVM, which may hang."""
        pipeline = self._pipeline
        if pipeline is not None:
            self._progress = _known(pipeline.progress, PipelineProgress())

    def status(self) -> PipelineStatus:
        status = self._status
        return replace(status, progress=self._progress) if status.state is State.RUNNING else status

    def details(self) -> PipelineDetails:
        pipeline = self._pipeline
        return PipelineDetails(
            self.status(),
            self._definition.program,
            self._definition.arguments,
            str(self._context.folder.log(self.name)),
            () if pipeline is None else _known(lambda: _queries(pipeline), ()),
            "" if pipeline is None else _known(pipeline.describe, "")[:LONGEST_DESCRIPTION],
        )

    # -- in its thread -------------------------------------------------------------------------------------------------

    def run(self, pipeline: Pipeline) -> None:
        """Run the program's pipeline. Called by `kaspar.pipelines.run` in the program."""
        self._context.loader.end_turn()
        self._pipeline = pipeline
        context = self._context
        PipelineRunner(pipeline, stop=self._stop, report=self._report, lost=context.lost).run(context.session)

    def _run(self) -> None:
        output = PipelineLog(self._context.folder.log(self.name))
        self._say = output.say
        HOST.set(self)
        try:
            # Jobs of one pipeline do not wait for all tasks of another's. Its queries inherit this property.
            self._context.session.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
            self._repeat()
        except Exception:  # the edge of the thread: other pipelines continue
            log.exception("the thread of a pipeline failed", pipeline=self.name)
            self._to(State.FAILED, reason="the host failed to run it: see its log")
        finally:
            output.close()

    def _repeat(self) -> None:
        back_off = BackOff()
        while not self._stop.is_set():
            began = time.monotonic()
            self._to(State.STARTING)
            failure = self._execute()
            if failure is None:
                break
            delay_s = back_off.next_delay_s(lived_s=time.monotonic() - began)
            self._failed(State.FAILED, failure, delay_s)
            self._stop.wait(delay_s)
        self._to(self._state_when_stopped if self._stop.is_set() else State.FINISHED)

    def _execute(self) -> str | None:
        """Run the program once. Returns the reason if it failed."""
        program = Path(self._definition.program)
        try:
            self._context.loader.execute(program, self._definition.arguments, self._stop)
        except ModulesChanged as changed:
            self._context.renew(f"{self.name}: {changed}")
            self._stop.wait()
        except SystemExit as end:
            return None if end.code in (None, 0) else f"its program exited with code {end.code}"
        except BaseException as error:
            if self._context.lost() is not None:
                self._stop.wait()  # the host ends, and the next one counts that as a restart
                return None
            _print_traceback(error, program)
            return reason_of(error)
        finally:
            self._pipeline = None
        return None

    def _report(self, change: Change) -> None:
        if change.reason is not None:
            self._failed(change.state, change.reason, change.delay_s)
        else:
            self.sample()
            self._to(change.state)

    def _failed(self, state: State, reason: str, delay_s: float) -> None:
        self._say(f"failed, next start in {delay_s:g} s: {reason}")
        now_ms = time.time_ns() // 1_000_000
        self._set(
            replace(
                self._status,
                state=state,
                since_ms=now_ms,
                restarts=self._status.restarts + 1,
                reason=reason,
                failed_ms=now_ms,
            )
        )

    def _to(self, state: State, reason: str | None = None) -> None:
        self._say(str(state))
        self._set(
            replace(
                self._status,
                state=state,
                since_ms=time.time_ns() // 1_000_000,
                reason=reason or self._status.reason,
            )
        )

    def _set(self, status: PipelineStatus) -> None:
        self._status = status
        try:
            self._context.folder.write_seen(self.name, Seen(self.generation, status))
        except Exception:  # a full disk must not end a pipeline that runs
            log.exception("the state of a pipeline was not written", pipeline=self.name)
        self._context.changed()


def _print_traceback(error: BaseException, program: Path) -> None:
    """Print a traceback that starts in the program, as Python does when a program fails."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(program):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _queries(pipeline: Pipeline) -> tuple[QueryStatus, ...]:
    return tuple(
        QueryStatus(query.name or "", str(query.id), query.isActive, str(query.status["message"]))
        for query in pipeline.queries
    )


def _known(read: Callable[[], _Value], default: _Value) -> _Value:
    """A value that a pipeline reports, or the default if it raises: an error in one must not hide all others."""
    try:
        return read()
    except Exception as problem:
        log.debug("a pipeline failed to report", problem=str(problem))
        return default
