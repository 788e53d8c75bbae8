"""Runs a pipeline without a supervisor: `python app.py`, or under spark-submit."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO

from kaspar.pipelines.display import Display
from kaspar.pipelines.exit_codes import INTERRUPTED
from kaspar.pipelines.folder import SessionPlan
from kaspar.pipelines.metrics import metrics_page
from kaspar.pipelines.pipeline import Pipeline, PipelineProgress
from kaspar.pipelines.runner import Change, PipelineRunner
from kaspar.pipelines.sessions import let_workers_import_from, new_session
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.supervisor.signals import Signals

_SHOW_EVERY_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.1


class Figures:
    """The status of the pipeline, written by the thread that runs it and read by others."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._status = PipelineStatus(pipeline.name, State.STARTING, _now_ms())

    def change(self, change: Change) -> None:
        status = replace(self._status, state=change.state, since_ms=_now_ms())
        if change.reason is not None:
            status = replace(status, restarts=status.restarts + 1, reason=change.reason, failed_ms=status.since_ms)
        self._status = status

    def status(self) -> PipelineStatus:
        progress = PipelineProgress()
        if self._status.state is State.RUNNING:
            with contextlib.suppress(Exception):  # the query is just ending
                progress = self._pipeline.progress()
        return replace(self._status, progress=progress)


def run_alone(pipeline: Pipeline, plan: SessionPlan, *, metrics: str | None = None, out: TextIO | None = None) -> None:
    """Create a session, run the pipeline until SIGINT or SIGTERM, and end the session."""
    from pyspark import SparkContext

    from kaspar.pipelines.jvm import Jvm
    from kaspar.spark.running.sessions import end

    figures = Figures(pipeline)
    had_session = SparkContext._active_spark_context is not None
    if not had_session:
        _let_workers_import_modules_beside_the_program()
    page = None if metrics is None else metrics_page(metrics, lambda: [figures.status()])
    stop = threading.Event()
    waits = f"{pipeline.name}: stopping as soon as Spark has started. Press Ctrl-C again to stop at once."
    # A signal does not interrupt the start, which would print tracebacks of Python and of Java.
    with _stopped_by_signals(stop, lambda: print(waits, file=out or sys.stderr, flush=True)):
        session = new_session(pipeline.name, plan)
    jvm = Jvm(session)
    try:
        if page is not None:
            page.start()
        with (
            _stopped_by_signals(stop),  # again: PySpark has set its own handler
            jvm.signals_call(stop.set),
            _shown(figures, out or sys.stderr),
        ):
            PipelineRunner(pipeline, stop=stop, report=figures.change, lost=jvm.problem).run(session)
    finally:
        if page is not None:
            page.stop()
    if not had_session:  # not after an error: PySpark reads its text from the JVM
        end(session)


def _let_workers_import_modules_beside_the_program() -> None:
    """Let workers import modules from the program's folder, as the program does. Not needed for `python -m`, where both
    find them in the working folder."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is not None and getattr(main, "__spec__", None) is None:
        let_workers_import_from(Path(file).resolve().parent)


@contextlib.contextmanager
def _stopped_by_signals(stop: threading.Event, say: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Set `stop` on SIGINT and SIGTERM. Only the main thread can handle signals: in another thread this does nothing,
    and the program itself ends the pipeline."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def look() -> None:
        # Not in the signal handler, which may interrupt the main thread while that holds the event's lock.
        if signals.stop_requested and not stop.is_set():
            stop.set()
            say()
        if signals.is_impatient:
            os._exit(INTERRUPTED)

    with Signals() as signals, _repeated(look, _LOOK_EVERY_S):
        yield
    look()


@contextlib.contextmanager
def _shown(figures: Figures, out: TextIO) -> Iterator[None]:
    """Show the status periodically: on a terminal in a line that is updated in place, otherwise a line per change."""
    display = Display(out)
    with _repeated(lambda: display.show([figures.status()]), _SHOW_EVERY_S):
        yield


@contextlib.contextmanager
def _repeated(action: Callable[[], None], every_s: float) -> Iterator[None]:
    """Call `action` periodically in a thread."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s):
            action()

    thread = threading.Thread(target=repeat, name="kaspar-pipeline-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
