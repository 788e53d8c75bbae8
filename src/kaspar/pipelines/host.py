"""The host: a process with one Spark session that runs every pipeline of a folder, each program in a thread of its own.

`python -m kaspar.pipelines.host FOLDER`, started by the supervisor, ends with it. What to run is in the folder: a host
follows the definitions there, which commands change, and looks at them again when a request says so. It ends when its
session is lost, and the supervisor starts another.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base import log as base_log
from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.base.processes import ProcessId
from kaspar.pipelines.ambient import begin_hosting
from kaspar.pipelines.control import ControlServer
from kaspar.pipelines.exit_codes import RENEWED, SESSION_LOST
from kaspar.pipelines.folder import Definition, Folder, RunningHost, Seen, Wanted
from kaspar.pipelines.hosted import HostContext, HostedProgram
from kaspar.pipelines.messages import ApplyChanges, Described, DescribePipeline, Pipelines, Request, Response
from kaspar.pipelines.modules import ModulesBeside
from kaspar.pipelines.output import route_output
from kaspar.pipelines.pipeline import STOP_TIMEOUT_S
from kaspar.pipelines.programs import Loader
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, State
from kaspar.supervisor.signals import Signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log(__name__)

LONGEST_WAIT_S: Final = 600.0
_LOOK_EVERY_S: Final = 0.1
_LOOK_AT_SESSION_EVERY_S: Final = 1.0
_AFTER_STOP_TIMEOUT_S: Final = 5.0


class Host:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._begun_ms = time.time_ns() // 1_000_000
        self._changed = threading.Condition()
        """Guards what follows, which the threads of requests read."""
        self._definitions = folder.definitions()
        self._programs: dict[str, HostedProgram] = {}
        self._asked = 0
        self._applied = -1
        self._context: HostContext | None = None
        self._renewal: str | None = None

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
        """Whether a pipeline is as wanted, or has failed to be."""
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

    def run(self) -> int:
        """Until a signal, or until the session is lost. The exit code."""
        server = ControlServer(self._folder.socket, self.respond)
        try:
            self._folder.write_host(RunningHost(ProcessId.of(os.getpid())))
            session = self._start_session()
            code = self._follow(session)
            _end(session)
            return code
        finally:
            server.close()

    def _start_session(self) -> "SparkSession":
        from kaspar.pipelines.jvm import Jvm
        from kaspar.pipelines.sessions import new_session

        modules = ModulesBeside(self._folder.modules)
        earlier = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = f"{self._folder.modules}{os.pathsep + earlier if earlier else ''}"
        session = new_session("kaspar pipelines", self._folder.session())
        self._jvm = Jvm(session)
        self._folder.write_host(RunningHost(ProcessId.of(os.getpid()), self._jvm.id))
        context = HostContext(self._folder, session, Loader(modules), self._notify, self._renew)
        with self._changed:
            self._context = context
        return session

    def _follow(self, session: "SparkSession") -> int:
        look_at = 0.0
        with Signals() as signals:
            while not signals.stop_requested and self._renewal is None:
                self._reconcile()
                now = time.monotonic()
                if now >= look_at:
                    look_at = now + _LOOK_AT_SESSION_EVERY_S
                    self._exit_if_lost()
                with self._changed:
                    self._changed.wait(_LOOK_EVERY_S)
            if self._renewal is not None:
                log.info("the host starts again, to import modules that have changed", reason=self._renewal)
            self._stop_all()
        return 0 if self._renewal is None else RENEWED

    def _exit_if_lost(self) -> None:
        """Not by an exception: the threads of the programs wait for a JVM that does not respond any more."""
        problem = self._jvm.problem()
        if problem is not None:
            log.error("the session is lost, and the host ends", reason=problem)
            base_log.flush()
            os._exit(SESSION_LOST)

    def _reconcile(self) -> None:
        """Bring what runs closer to the definitions. Does not wait for anything."""
        with self._changed:
            asked, definitions = self._asked, self._definitions
        if asked != self._applied:
            definitions = self._read_definitions()
        for name in sorted(definitions.keys() | self._programs.keys()):
            self._reconcile_one(name, definitions.get(name))
        if asked != self._applied:
            with self._changed:
                self._definitions, self._applied = definitions, asked
                self._changed.notify_all()

    def _read_definitions(self) -> dict[str, Definition]:
        try:
            return self._folder.definitions()
        except KasparError as problem:
            log.error("definitions cannot be read: those of before stay in force", reason=str(problem))
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
            if program is None:
                self._note_stopped(name, definition)
        elif program is not None and program.generation == definition.generation:
            pass  # it has finished
        elif not self._folder.has_finished(name, definition):
            self._start(name, definition)

    def _note_stopped(self, name: str, definition: Definition) -> None:
        """It was stopped while no host ran: the state in the folder is older than that."""
        seen = self._folder.seen(name)
        if seen is None or seen.ended_unexpectedly:
            with contextlib.suppress(KasparError):  # it is only shown
                self._folder.write_seen(name, Seen(definition.generation, self._first_status(name, definition)))

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
        """Before it runs in this host."""
        seen = self._folder.seen(name)
        if seen is None or seen.generation != definition.generation:
            status = PipelineStatus(name, State.STARTING, self._begun_ms)
        elif seen.ended_unexpectedly and definition.wanted is Wanted.RUNNING:
            supervisor = self._folder.supervisor()
            reason = None if supervisor is None else supervisor.problem
            status = replace(
                seen.status,
                restarts=seen.status.restarts + 1,
                reason=reason or "its host was killed, or the machine stopped",
                failed_ms=self._begun_ms,
            )
        else:
            status = seen.status
        if definition.wanted is Wanted.STOPPED:
            return status if status.state is State.STOPPED else replace(status, state=State.STOPPED)
        if status.state is State.FINISHED:
            return status
        return replace(status, state=State.STARTING, since_ms=self._begun_ms)

    def _stop_all(self) -> None:
        for program in self._programs.values():
            program.request_stop(State.INTERRUPTED)
        until = time.monotonic() + STOP_TIMEOUT_S + _AFTER_STOP_TIMEOUT_S
        while alive := [name for name, program in self._programs.items() if program.is_alive]:
            self._exit_if_lost()
            if time.monotonic() > until:
                log.warning("pipelines did not stop in time, and are interrupted", pipelines=", ".join(alive))
                return
            with self._changed:
                self._changed.wait(_LOOK_EVERY_S)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _renew(self, reason: str) -> None:
        with self._changed:
            self._renewal = reason
            self._changed.notify_all()


def _end(session: "SparkSession") -> None:
    from kaspar.spark.running.sessions import end

    try:
        end(session)
    except Exception:  # its JVM ends with this process in any case
        log.exception("the session did not stop cleanly")


def main(argv: Sequence[str] | None = None) -> int:
    (path,) = sys.argv[1:] if argv is None else argv
    base_log.configure()
    folder = Folder(Path(path))
    begin_hosting()
    os.chdir(folder.work)
    try:
        host = Host(folder)
        route_output()
        return host.run()
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    finally:
        base_log.flush()


if __name__ == "__main__":
    sys.exit(main())
