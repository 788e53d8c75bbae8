"""Spark programs as processes: each in a session of the system's own, by which all that belongs to it is found.

A driver is a Python program and its JVM; a standalone worker launches executors; either starts Python daemons, which
fork workers. Whatever of it outlives the rest is still in the session.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[3]
_PROC = Path("/proc")
_LAST_LINES = 4000


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    command: str

    @property
    def is_executor(self) -> bool:
        return "CoarseGrainedExecutorBackend" in self.command

    @property
    def is_python_worker(self) -> bool:
        """Also the daemon that forks them, and what plans or commits on the driver's side."""
        return "-m pyspark" in self.command or "worker_daemon pyspark" in self.command

    @property
    def is_driver(self) -> bool:
        """The program or its JVM."""
        return not (self.is_executor or self.is_python_worker)

    def send(self, number: signal.Signals) -> None:
        """Does nothing if it has just ended."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


def processes_of(session: int) -> list[Process]:
    """All living processes of the session."""
    found = []
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(Process(int(folder.name), command))
    return found


class Program:
    """One life of a program. What it prints goes to a file."""

    def __init__(self, command: Sequence[str], log_file: Path) -> None:
        self.log_file = log_file
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def terminate(self) -> None:
        """SIGTERM, to the program alone."""
        self._process.terminate()

    def processes(self) -> list[Process]:
        return processes_of(self._process.pid)

    def kill(self, victims: Sequence[Process] | None = None) -> None:
        """SIGKILL, to everything of it by default."""
        for each in self.processes() if victims is None else victims:
            each.send(signal.SIGKILL)

    def end_of_log(self) -> str:
        return self.log_file.read_text(errors="replace")[-_LAST_LINES:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing of it is left behind."""
        while self.processes():
            self.kill()
            self._process.poll()
        self._process.wait()
