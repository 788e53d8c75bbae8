"""A child process that runs in the background, and ends when this process ends."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId

_ENDS_WITH_PARENT: Final = Path(__file__).with_name("ends_with_parent.py")
_NOTICED: Final = ("kaspar: ", " ERROR ", " CRITICAL ", "Exception", "Error: ")

_LARGEST_LOG: Final = 10_000_000

_SPAWNER: Final = ThreadPoolExecutor(1, thread_name_prefix="kaspar-spawner")
"""Starts all children: PR_SET_PDEATHSIG fires when the thread that started the child ends, and this thread lives as
long as the process."""


def roll_log(file: Path) -> None:
    """Roll a large log, keeping one earlier file. Call it only while nothing writes to the log."""
    with contextlib.suppress(OSError):  # a log is not worth a failed start
        if file.stat().st_size > _LARGEST_LOG:
            file.rename(file.with_name(f"{file.name}.1"))


class Child:
    """A process that can be restarted after it has exited. Its output is appended to a file, which is rolled if it is
    large.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        log_file: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`log_file` is the file to which the program logs, if not its output."""
        self._command = list(command)
        self._output = output
        self.log_file = log_file or output
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._logged_before: dict[Path, int] = {}
        self.id: ProcessId | None = None
        """The id of the last process, which may have exited."""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while it runs, or if it was never started. If negative, the signal that killed it."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        roll_log(self._output)
        self._logged_before = {file: _size(file) for file in (self._output, self.log_file)}
        self._process = _SPAWNER.submit(self._spawn).result()
        self.id = ProcessId.of(self._process.pid)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        wrapper = [sys.executable, "-I", "-S", str(_ENDS_WITH_PARENT), str(os.getpid())]
        try:
            with self._output.open("ab") as output:
                return subprocess.Popen(
                    [*wrapper, *self._command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self._environment},
                    start_new_session=True,  # Ctrl-C must reach only this process
                )
        except OSError as problem:
            raise KasparError(f"{self._command[0]} cannot be started: {problem}") from None

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # does nothing if it has exited

    def pause(self) -> None:
        """Send SIGSTOP, and return when all of its threads have stopped. SIGCONT resumes it."""
        if self._process is not None and self.is_running:
            self._process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wait(self, timeout_s: float) -> bool:
        """Whether it exits within this time."""
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return False
        return True

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def how_it_ended(self) -> str:
        code = self.exit_code
        if code is None:
            return "was not started" if self._process is None else "is running"
        if code >= 0:
            return f"exited with code {code}"
        known = {number.value: number.name for number in signal.Signals}
        return f"was killed by {known.get(-code, f'signal {-code}')}"

    def last_problem(self) -> str | None:
        """The most informative line of the last run's output: the last error, or else the last line."""
        lines = [line.strip() for line in self._written().splitlines() if line.strip() and line[0] not in "\t "]
        telling = [line for line in lines if any(sign in line for sign in _NOTICED)]
        return next(reversed(telling or lines), None)

    def _written(self) -> str:
        return "".join(
            file.read_bytes()[before if before <= _size(file) else 0 :].decode(errors="replace")
            for file, before in reversed(self._logged_before.items())
            if file.exists()
        )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
