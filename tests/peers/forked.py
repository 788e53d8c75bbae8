"""Processes that are forked from one that has already imported what they need, so that a start takes milliseconds.

What a test starts, signals and kills is a process all the same. How a command starts from nothing is not seen here.
"""

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_FORKING: Final = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["pytest", "tests.peers.forked", "kaspar.registry.running", "kaspar.services.process"])


class ForkedProcess:
    """Runs `main(arguments)`, whose result is the exit code, with a log file as its output. The names are those of
    subprocess.Popen."""

    def __init__(self, main: Callable[[Sequence[str]], int], arguments: Sequence[str], log_file: Path) -> None:
        self._process = _FORKING.Process(target=_run, args=(main, arguments, log_file))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _run(main: Callable[[Sequence[str]], int], arguments: Sequence[str], log_file: Path) -> None:
    output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    raise SystemExit(main(arguments))
