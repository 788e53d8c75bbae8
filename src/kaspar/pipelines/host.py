"""Runs the programs of a host according to the definitions in its folder, and reports the state of its pipelines.

Commands change definitions, and a request makes the host reread them. One thread calls `reconcile` repeatedly; the
threads that serve requests only read, and wait for changes.
"""

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.pipelines.folder import Definition, Folder, Seen, Wanted
from kaspar.pipelines.hosted import HostContext, HostedProgram
from kaspar.pipelines.messages import ApplyChanges, Described, DescribePipeline, Pipelines, Request, Response
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, State

log = get_log(__name__)

LONGEST_WAIT_S: Final = 600.0


class Host:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._begun_ms = time.time_ns() // 1_000_000
        supervisor = folder.supervisor()
        self._end_of_the_last = None if supervisor is None else supervisor.problem
        """Why the last host ended."""
        self._changed = threading.Condition()
        """Guards the fields below, which the threads that serve requests read."""
        self._definitions = folder.definitions()
        self._programs: dict[str, HostedProgram] = {}
        self._asked = 0
        self._applied = -1
        self._context: HostContext | None = None
        self.renewal: str | None = None
        """Why the programs need another process, if they do."""

    # -- requests ------------------------------------------------------------------------------------------------------

    def respond(self, request: Request) -> Response:
        if isinstance(request, DescribePipeline):
            return Described(self._details(request.name))
        if isinstance(request, ApplyChanges):
            return self._apply(request)
        return self._pipelines()

    def _apply(self, request: ApplyChanges) -> Pipelines:
        def unsettled() -> tuple[str, ...]:
            return tuple(name for name in request.names if self._applied < mine or not self._is_settled(name))

        with self._changed:
            self._asked += 1
            mine = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: not unsettled(), min(request.wait_s, LONGEST_WAIT_S))
            left = unsettled()
        return self._pipelines(left)

    def _is_settled(self, name: str) -> bool:
        """Whether a pipeline has reached the state that its definition wants, or has failed to."""
        definition, program = self._definitions.get(name), self._programs.get(name)
        if definition is None or definition.wanted is Wanted.STOPPED:
            return program is None or not program.is_alive
        if program is None:
            return self._folder.has_finished(name, definition)
        return program.generation == definition.generation and program.state is not State.STARTING

    def _pipelines(self, unsettled: tuple[str, ...] = ()) -> Pipelines:
        with self._changed:
            known = dict(self._definitions)
        statuses = tuple(self._status(name, definition) for name, definition in known.items())
        return Pipelines(statuses, is_ready=self._context is not None, unsettled=unsettled)

    def _status(self, name: str, definition: Definition) -> PipelineStatus:
        program = self._programs.get(name)
        return self._first_status(name, definition) if program is None else program.status()

    def _details(self, name: str) -> PipelineDetails:
        program = self._programs.get(name)
        if program is not None:
            return program.details()
        definition = self._definitions.get(name)
        if definition is None:
            raise KasparError(f"there is no pipeline {name} in {self._folder.path}")
        status = self._first_status(name, definition)
        return PipelineDetails(status, definition.program, definition.arguments, str(self._folder.log(name)))

    # -- what runs -----------------------------------------------------------------------------------------------------

    def begin(self, context: HostContext) -> None:
        """Allow programs to run: the session has been created."""
        with self._changed:
            self._context = context

    def wait(self, timeout_s: float) -> None:
        """Wait for a change, or until the timeout."""
        with self._changed:
            self._changed.wait(timeout_s)

    def notify(self) -> None:
        """Wake up the requests that wait for a change."""
        with self._changed:
            self._changed.notify_all()

    def renew(self, reason: str) -> None:
        with self._changed:
            self.renewal = reason
            self._changed.notify_all()

    def interrupt(self) -> None:
        """Ask all programs to stop, so that the next host resumes them."""
        for program in self._programs.values():
            program.request_stop(State.INTERRUPTED)

    def sample(self) -> None:
        """Read the progress of all pipelines. Called in a separate thread, because a JVM may be slow to respond."""
        for program in list(self._programs.values()):
            program.sample()

    def alive(self) -> list[str]:
        return [name for name, program in self._programs.items() if program.is_alive]

    def reconcile(self) -> None:
        """Start and stop programs according to the definitions. Does not block."""
        with self._changed:
            asked, definitions = self._asked, self._definitions
        if asked != self._applied:
            definitions = self._read_definitions()
            self._note_stopped(definitions)
        for name in sorted(definitions.keys() | self._programs.keys()):
            self._reconcile_one(name, definitions.get(name))
        with self._changed:
            self._definitions, self._applied = definitions, asked
            self._changed.notify_all()  # also for requests that wait for the end of a thread, which does not notify

    def _read_definitions(self) -> dict[str, Definition]:
        try:
            return self._folder.definitions()
        except KasparError as problem:
            log.error("definitions cannot be read: the previous ones stay in force", reason=str(problem))
            return self._definitions

    def _reconcile_one(self, name: str, definition: Definition | None) -> None:
        program = self._programs.get(name)
        if program is not None and program.is_alive:
            stops = definition is None or definition.wanted is Wanted.STOPPED
            if stops or (definition is not None and definition.generation != program.generation):
                program.request_stop(State.STOPPED)
        elif definition is None:
            self._replace(name, None)
        elif definition.wanted is Wanted.STOPPED:
            pass  # it has stopped
        elif program is not None and program.generation == definition.generation:
            pass  # it has finished
        elif not self._folder.has_finished(name, definition):
            self._start(name, definition)

    def _note_stopped(self, definitions: Mapping[str, Definition]) -> None:
        """Correct the saved states of pipelines that were stopped while no host was running."""
        for name, definition in definitions.items():
            if definition.wanted is Wanted.STOPPED and name not in self._programs:
                seen = self._folder.seen(name)
                if seen is None or seen.ended_unexpectedly:
                    with contextlib.suppress(KasparError):  # the state is only for display
                        status = self._first_status(name, definition)
                        self._folder.write_seen(name, Seen(definition.generation, status))

    def _start(self, name: str, definition: Definition) -> None:
        if self._context is not None:
            program = HostedProgram(name, definition, self._context, self._first_status(name, definition))
            self._replace(name, program)
            program.start()

    def _replace(self, name: str, program: HostedProgram | None) -> None:
        with self._changed:
            self._programs.pop(name, None)
            if program is not None:
                self._programs[name] = program
            self._changed.notify_all()

    def _first_status(self, name: str, definition: Definition) -> PipelineStatus:
        """The status of a pipeline before it runs in this host."""
        seen = self._folder.seen(name)
        if seen is None or seen.generation != definition.generation:
            status = PipelineStatus(name, State.STARTING, self._begun_ms)
        elif seen.ended_unexpectedly and definition.wanted is Wanted.RUNNING:
            status = replace(
                seen.status,
                restarts=seen.status.restarts + 1,
                reason=self._end_of_the_last or "its host was killed, or the machine stopped",
                failed_ms=self._begun_ms,
            )
        else:
            status = seen.status
        if definition.wanted is Wanted.STOPPED:
            return status if status.state is State.STOPPED else replace(status, state=State.STOPPED)
        if status.state is State.FINISHED:
            return status
        return replace(status, state=State.STARTING, since_ms=self._begun_ms)
