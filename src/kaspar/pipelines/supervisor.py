"""The supervisor: runs the host of a folder until it receives a signal, and restarts the host if it ends by itself.

It does not import Spark, so it is small and survives what a JVM or a program may do to the host. It holds no state:
after its own end, the next supervisor finds everything in the folder.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId, end_all
from kaspar.pipelines.control import NoHost, ask
from kaspar.pipelines.definitions import finished_pipelines
from kaspar.pipelines.exit_codes import INTERRUPTED, RENEWED
from kaspar.pipelines.folder import Folder, RunningSupervisor
from kaspar.pipelines.messages import ListPipelines, Pipelines
from kaspar.pipelines.pipeline import STOP_TIMEOUT_S
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.supervisor.back_off import BackOff
from kaspar.supervisor.child import Child
from kaspar.supervisor.signals import Signals

_LOOK_EVERY_S: Final = 0.5
_ASK_TIMEOUT_S: Final = 2.0
_STOP_HOST_S: Final = STOP_TIMEOUT_S + 20.0
"""The time limit for a host to stop all pipelines and its session."""


class Output(Protocol):
    def say(self, line: str) -> None: ...

    def show(self, statuses: Sequence[PipelineStatus]) -> None: ...


def end_leftovers(folder: Folder) -> None:
    """End the host and the JVM of a supervisor that was killed: they normally end with it, after their micro-batches.
    Two hosts must not run the same pipelines."""
    earlier = folder.host()
    if earlier is not None:
        end_all([earlier.process])
        end_all([earlier.jvm] if earlier.jvm is not None else [])


# -P: modules are not imported from the working folder.
HOST_COMMAND: Final = (sys.executable, "-P", "-m", "kaspar.pipelines.host_process")


class Supervisor:
    def __init__(self, folder: Folder, output: Output, host_command: Sequence[str] = HOST_COMMAND) -> None:
        self._folder = folder
        self._output = output
        self._host = Child([*host_command, str(folder.path)], output=folder.host_log)
        self._started_at = 0.0
        self._starts_at: float | None = None
        self._was_ready = False
        self._back_off = BackOff()
        self._recorded: RunningSupervisor | None = None
        self._finished_before: set[str] = set()
        self.statuses: Sequence[PipelineStatus] = ()
        """The statuses that the host reported last, for the metrics page."""

    def run(self) -> int:
        """Run until a signal, or until all programs have finished. Returns the exit code. Raises KasparError if the
        host does not start."""
        with Signals() as signals:
            try:
                self._finished_before = finished_pipelines(self._folder)
                self._start()
                while not signals.stop_requested:
                    self._look()
                    if self._all_finished():
                        self._output.say("All programs have finished.")
                        break
                    signals.wait(_LOOK_EVERY_S)
            finally:
                self._stop(signals)
            return INTERRUPTED if signals.is_impatient else 0

    # -- the host ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._host.start()
        self._started_at, self._starts_at = time.monotonic(), None
        if not self._was_ready:
            self._record(None)

    def _look(self) -> None:
        now = time.monotonic()
        if self._starts_at is not None:
            if now >= self._starts_at:
                self._start_again(now)
        elif not self._host.is_running:
            self._ended(now)
        else:
            self._ask()

    def _ended(self, now: float) -> None:
        end_leftovers(self._folder)  # the JVM, which ends by itself
        how = self._host.how_it_ended()
        if self._host.exit_code == RENEWED:
            self._output.say("Restarting the host, because modules of a program have changed.")
            self._start_again(now)
            return
        if not self._was_ready:
            raise KasparError(f"{self._problem(how)} (log: {self._folder.host_log})")
        delay_s = self._back_off.next_delay_s(lived_s=now - self._started_at)
        self._starts_at = now + delay_s
        problem = self._problem(how)
        self._record(problem)
        self.statuses = [
            status if status.state in (State.STOPPED, State.FINISHED) else replace(status, state=State.RESTARTING)
            for status in self.statuses
        ]
        self._output.say(
            f"Restarting all pipelines in {delay_s:g} s, because {problem} (log: {self._folder.host_log})."
        )

    def _problem(self, how: str) -> str:
        """Why the host ended: the error message that it printed last, if any."""
        words = self._host.last_problem() or ""
        return words.removeprefix("kaspar: ") if words.startswith("kaspar: ") else f"the host {how}"

    def _start_again(self, now: float) -> None:
        try:
            self._start()
        except KasparError as problem:  # no more processes, or no space for its log: may be temporary
            delay_s = self._back_off.next_delay_s(lived_s=0.0)
            self._starts_at = now + delay_s
            self._output.say(f"The host cannot be started; retrying in {delay_s:g} s: {problem}")

    def _ask(self) -> None:
        try:
            response = ask(self._folder.socket, ListPipelines(), Pipelines, timeout_s=_ASK_TIMEOUT_S)
        except NoHost:
            return  # it is starting, or busy
        self.statuses = response.statuses
        if response.is_ready and not self._was_ready:
            self._was_ready = True
            self._output.say(f"Spark is ready. Pipelines are in {self._folder.path}; Ctrl-C stops.")
        if response.is_ready:
            self._record(None)
        self._output.show(self.statuses)

    def _all_finished(self) -> bool:
        """Whether nothing is left to run, and something has finished since the start."""
        finished = {status.name for status in self.statuses if status.state is State.FINISHED}
        left = {status.name for status in self.statuses if status.state not in (State.FINISHED, State.STOPPED)}
        self._finished_before -= left  # a user has started them again
        return not left and bool(finished - self._finished_before)

    # -- its end -------------------------------------------------------------------------------------------------------

    def _stop(self, signals: Signals) -> None:
        if signals.stop_requested and self._host.is_running and not signals.is_impatient:
            self._output.say("Stopping after the running micro-batches. Press Ctrl-C again to stop at once.")
        self._host.send(signal.SIGTERM)
        until = time.monotonic() + _STOP_HOST_S
        while self._host.is_running and not signals.is_impatient:
            if time.monotonic() > until:
                self._output.say(f"The host did not stop within {_STOP_HOST_S:.0f} s and was killed.")
                break
            signals.wait(_LOOK_EVERY_S)
        self._host.kill()
        end_leftovers(self._folder)
        self._folder.remove_supervisor()

    def _record(self, problem: str | None) -> None:
        running = RunningSupervisor(ProcessId.of(os.getpid()), problem)
        if running != self._recorded:
            with contextlib.suppress(KasparError):  # a full disk must not end pipelines that run
                self._folder.write_supervisor(running)
                self._recorded = running
