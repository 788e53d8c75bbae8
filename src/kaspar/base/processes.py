"""Processes that outlive the command that started them: they and their descendants are identified reliably and stopped.

The kernel reuses process ids, so a process is identified by its id and its start time, in ticks since boot, from /proc.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError

EXIT_TIMEOUT_S: Final = 20.0
"""How long a process may take to exit after SIGTERM."""

_INTERPRETER_OPTIONS_WITH_A_VALUE: Final = ("-X", "-W")
_PAUSE_S: Final = 0.05
_ZOMBIE: Final = "Z"


@dataclass(frozen=True, slots=True)
class ProcessId:
    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """The process that currently has this id."""
        stat = _stat(pid)
        return cls(pid, stat.start_ticks if stat is not None else -1)

    def is_running(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat.start_ticks == self.start_ticks and stat.state != _ZOMBIE

    def send(self, number: signal.Signals) -> None:
        if self.is_running():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return  # it has just exited
            except PermissionError:
                raise KasparError(f"process {self.pid} belongs to another user, who has to stop it") from None


def descendants(process: ProcessId) -> list[ProcessId]:
    """The running descendants of a process."""
    stats = {int(entry.name): _stat(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        if stat is not None:
            children.setdefault(stat.parent, []).append(pid)
    found: list[ProcessId] = []
    waiting = list(children.get(process.pid, ()))
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, ())
        stat = stats[pid]
        if stat is not None:
            found.append(ProcessId(pid, stat.start_ticks))
    return found


def session_of(leader: ProcessId) -> list[ProcessId]:
    """The running processes of the session that `leader` has begun, including children of processes that have ended."""
    stats = {int(entry.name): _stat(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = [ProcessId(pid, stat.start_ticks) for pid, stat in stats.items() if stat and stat.session == leader.pid]
    return [process for process in found if process.is_running()]


def running_programs() -> Iterator[tuple[int, list[str]]]:
    """The ids and command lines (`program_words`) of the processes visible to this user, except this one."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:
            continue
        yield int(entry.name), program_words(words)


def program_words(words: Sequence[str]) -> list[str]:
    """A command line from its program on: the command itself, or the script or module that Python runs. A program that
    only has another one as an argument, such as an editor or `timeout`, does not count as that one."""
    rest = list(words)
    if rest and Path(rest[0]).name.startswith("python"):
        rest.pop(0)
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            rest = rest[2:] if rest[0] in _INTERPRETER_OPTIONS_WITH_A_VALUE else rest[1:]
        if rest and rest[0] == "-m":
            rest.pop(0)
    return rest


def detach() -> None:
    """Continue in the background, without a terminal: standard output is lost."""
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def ask_to_stop(pids: Iterable[int]) -> tuple[int, list[int]]:
    """Send SIGTERM. Returns the number of processes that got it, and those that belong to another user. Processes that
    have just ended are not counted."""
    asked, refused = 0, []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
            asked += 1
        except ProcessLookupError:
            continue
        except PermissionError:
            refused.append(pid)
    return asked, refused


def end_all(processes: Sequence[ProcessId]) -> int:
    """Send SIGTERM, wait, and kill the processes that do not exit. Returns how many were running."""
    running = [process for process in processes if process.is_running()]
    for process in running:
        process.send(signal.SIGTERM)
    if not _wait_for_end(running):
        for process in running:
            process.send(signal.SIGKILL)
        _wait_for_end(running)
    return len(running)


def _wait_for_end(processes: Sequence[ProcessId]) -> bool:
    until = time.monotonic() + EXIT_TIMEOUT_S
    while any(process.is_running() for process in processes):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_S)
    return True


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    parent: int
    session: int
    start_ticks: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name in front of it may contain anything
    return _Stat(fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
