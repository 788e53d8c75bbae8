"""The files of a supervisor of pipelines, all in one folder that only its owner can access.

lock                    held by the supervisor while it runs
changes.lock            held by a command while it changes definitions
supervisor.json         the supervisor's process, and why its host is being restarted
host.json               the processes of the host and of Spark's JVM
session.json            the Spark master and settings, kept for later starts
control.sock            the host's socket for requests
host.log                the output of Spark and of the host
modules/                links to modules in the programs' folders, for Spark's workers
work/                   the working folder of the host
pipelines/NAME/         pipeline.json (its definition), state.json, pipeline.log

A definition is the state that users want; the host only reads it. state.json is the state that the host has seen last.
It is used by commands when no host is running, and by the next host, which counts an unexpected end as a restart.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.pipelines.json_files import read_json, write_json
from kaspar.pipelines.statuses import PipelineStatus, State

NAME_RULE: Final = "letters, digits, '.', '_' and '-', at most 100 characters, not starting with '.' or '-'"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_OWN_FILES: Final = {"lock", "changes.lock", "session.json", "session.new", "pipelines"}
"""Any of these shows that the folder was created for a supervisor, perhaps not completely."""


class Wanted(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Definition:
    """`generation` increases whenever a user starts the pipeline, and makes the host restart it. It is a time in
    milliseconds, so that a pipeline that is removed and added again gets another generation too."""

    program: str
    arguments: tuple[str, ...]
    generation: int
    wanted: Wanted = Wanted.RUNNING


@dataclass(frozen=True, slots=True)
class Seen:
    """The last status of a generation of a pipeline, as the host has seen it."""

    generation: int
    status: PipelineStatus

    @property
    def ended_unexpectedly(self) -> bool:
        """Whether the host was killed or its machine stopped, provided that no host is running now."""
        return self.status.state in (State.STARTING, State.RUNNING, State.RESTARTING, State.FAILED)


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The Spark session of the host. `master`: None means the environment's, or else all cores of this machine."""

    master: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunningSupervisor:
    """`problem`: why no host is running at the moment."""

    process: ProcessId
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RunningHost:
    process: ProcessId
    jvm: ProcessId | None = None


def default_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state", "kaspar", "pipelines")


def check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise KasparError(f"'{name}' is not a valid pipeline name ({NAME_RULE}): choose one with --name")
    return name


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.socket = self.path / "control.sock"
        self.host_log = self.path / "host.log"
        self.modules = self.path / "modules"
        self.work = self.path / "work"
        self._pipelines = self.path / "pipelines"
        self._supervisor_file = self.path / "supervisor.json"
        self._host_file = self.path / "host.json"
        self._session_file = self.path / "session.json"

    # -- the folder itself ---------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Create the folder with access for its owner only: anyone who can write here chooses what the owner runs."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            names = {entry.name for entry in self.path.iterdir()}
            if names and not names & _OWN_FILES:
                raise KasparError(
                    f"{self.path} is not empty and was not created by 'kaspar pipeline': choose an empty or new "
                    "folder with --dir"
                )
            if self.path.stat().st_uid != os.geteuid():
                raise KasparError(f"{self.path} belongs to another user: choose another folder with --dir")
            self.path.chmod(0o700)
            for inner in (self._pipelines, self.modules, self.work):
                inner.mkdir(exist_ok=True)
        except OSError as problem:
            raise KasparError(f"{self.path} cannot be used: {problem.strerror}") from None

    def exists(self) -> bool:
        return self._pipelines.is_dir()

    @contextlib.contextmanager
    def supervising(self) -> Iterator[bool]:
        """Hold the supervisor's lock. Yields False if another supervisor holds it."""
        with _locked(self.path / "lock", wait=False) as is_mine:
            yield is_mine

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for reading definitions and writing others that depend on them."""
        with _locked(self.path / "changes.lock", wait=True):
            yield

    # -- pipelines -----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all pipelines, sorted."""
        if not self._pipelines.is_dir():
            return []
        return sorted(entry.parent.name for entry in self._pipelines.glob("*/pipeline.json"))

    def definitions(self) -> dict[str, Definition]:
        found = {name: self.definition(name) for name in self.names()}
        return {name: definition for name, definition in found.items() if definition is not None}

    def definition(self, name: str) -> Definition | None:
        return read_json(self._pipelines / name / "pipeline.json", Definition)

    def define(self, name: str, definition: Definition) -> None:
        (self._pipelines / name).mkdir(exist_ok=True)
        write_json(self._pipelines / name / "pipeline.json", definition)

    def forget(self, name: str) -> None:
        """Remove a pipeline, its definition first: after an interrupted removal it is no pipeline any more."""
        (self._pipelines / name / "pipeline.json").unlink(missing_ok=True)
        shutil.rmtree(self._pipelines / name, ignore_errors=True)

    def seen(self, name: str) -> Seen | None:
        """None if there is no file or it is damaged: nothing depends on it."""
        try:
            return read_json(self._pipelines / name / "state.json", Seen)
        except KasparError:
            return None

    def has_finished(self, name: str, definition: Definition) -> bool:
        seen = self.seen(name)
        return seen is not None and seen.generation == definition.generation and seen.status.state is State.FINISHED

    def write_seen(self, name: str, seen: Seen) -> None:
        if (self._pipelines / name).is_dir():  # it may have been removed
            write_json(self._pipelines / name / "state.json", seen)

    def log(self, name: str) -> Path:
        return self._pipelines / name / "pipeline.log"

    # -- processes and the session -------------------------------------------------------------------------------------

    def supervisor(self) -> RunningSupervisor | None:
        """The supervisor, if it is running."""
        written = read_json(self._supervisor_file, RunningSupervisor)
        return written if written is not None and written.process.is_running() else None

    def write_supervisor(self, running: RunningSupervisor) -> None:
        write_json(self._supervisor_file, running)

    def remove_supervisor(self) -> None:
        self._supervisor_file.unlink(missing_ok=True)

    def host(self) -> RunningHost | None:
        """The processes that the host has written last. They may have ended."""
        return read_json(self._host_file, RunningHost)

    def write_host(self, running: RunningHost) -> None:
        write_json(self._host_file, running)

    def session(self) -> SessionPlan:
        return read_json(self._session_file, SessionPlan) or SessionPlan()

    def write_session(self, plan: SessionPlan) -> None:
        write_json(self._session_file, plan)


@contextlib.contextmanager
def _locked(file: Path, *, wait: bool) -> Iterator[bool]:
    """Lock a file; yields whether that succeeded. The kernel releases the lock however the process ends."""
    try:
        lock = file.open("w")
    except OSError as problem:
        raise KasparError(f"{file.parent} cannot be used: {problem.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
