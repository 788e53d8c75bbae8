"""`kaspar up` as people run it, and what it says."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kaspar.base.processes import ProcessId, descendants
from kaspar.spark.running.java import JavaMissing, find_java
from kaspar.supervisor.ports import consecutive_free_ports
from tests.integration.commands import PROGRAMS, run
from tests.peers.downloads import ToolMissingError
from tests.peers.missing import unless_missing

SECONDS = 60.0
NO_SERVICES = ("--only", "")
"""Of clusters that test others than services: their ports may be used by another test."""


def needs_java() -> None:
    def found() -> None:
        try:
            find_java()
        except JavaMissing as missing:
            raise ToolMissingError(str(missing)) from missing

    unless_missing(found)


def until(is_true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Up:
    """A supervisor in the foreground of nothing; its output is in a file."""

    def __init__(
        self, folder: Path, *arguments: str, port: int | None = None, services: Sequence[str] = NO_SERVICES
    ) -> None:
        self.folder = folder
        self.port = port or consecutive_free_ports(5)[0]
        self.output = folder.with_name(f"{folder.name}.out")
        self._arguments = [*arguments, *services, "--dir", str(folder), "--port", str(self.port)]
        self.process: subprocess.Popen[bytes]

    def start(self, *arguments: str) -> Self:
        """With other arguments than before, if some are given."""
        line = [str(PROGRAMS / "kaspar"), "up", *(arguments or self._arguments)]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self.wait_for("Ready after")
        return self

    def lines(self) -> list[str]:
        return self.output.read_text().splitlines()

    def wait_for(self, text: str) -> str:
        """The first line that contains this text."""

        def is_there() -> bool:
            assert self.process.poll() is None or text in self.output.read_text(), self.lines()
            return any(text in line for line in self.lines())

        until(is_there, f"no line with {text!r} in {self.lines()}")
        return next(line for line in self.lines() if text in line)

    def status(self, *arguments: str) -> dict[str, Any]:
        done = run("kaspar", "status", "--dir", self.folder, "--json", *arguments)
        status: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (0 if status["ready"] else 1), done
        return status

    def ready(self) -> dict[str, Any]:
        status = self.status("--wait", "60")
        assert status["ready"], status
        return status

    def members(self) -> list[ProcessId]:
        return descendants(ProcessId.of(self.process.pid))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        return self.process.wait(SECONDS)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.process.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for log in (self.output, *self.folder.glob("broker-*/broker.log")):
                error.add_note(f"-- {log}:\n" + "\n".join(log.read_text().splitlines()[-40:]))
        self.process.kill()
        self.process.wait()


def all_gone(processes: Sequence[ProcessId]) -> None:
    until(lambda: not any(process.is_running() for process in processes), f"some of {processes} are running")
