"""A supervisor as a process, its commands, and what its pipelines have written."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kaspar.base.processes import ProcessId
from kaspar.pipelines.folder import Folder
from tests.spark.conftest import SESSION

COUNTING = Path(__file__).with_name("counting.py")
KASPAR = [sys.executable, "-m", "kaspar.cli.main"]
SECONDS = 100.0
"""Each host starts a JVM, which takes long where the machine is busy."""


def wait_until(holds: Callable[[], bool], what: str, show: Callable[[], object] = str) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, f"not within {SECONDS:.0f} s: {what}\n{show()}"
        time.sleep(0.05)


class Counts:
    """What a counting pipeline has written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def lines(self, file: str = "batches") -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []

    def ended(self) -> list[int]:
        """The micro-batches that have ended, in order; one that was repeated counts twice."""
        return [int(line.split()[1]) for line in self.lines() if line.startswith("end")]

    def begin_slow_batch(self, show: Callable[[], object] = str) -> str:
        """Returns while one runs: the line that shows its end."""
        (self.folder / "slow").touch()
        begun = len(self.lines())
        wait_until(lambda: len(self.lines()) > begun and self.lines()[-1].startswith("start"), "a batch runs", show)
        return f"end {self.lines()[-1].split()[1]} 10"

    def wait_for_more(self, show: Callable[[], object] = str) -> None:
        before = len(self.ended())
        wait_until(lambda: len(self.ended()) > before + 1, f"{self.folder.name} goes on", show)


class Supervised:
    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder)
        self._output = folder.with_suffix(".out")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    def start(self, *arguments: str | Path) -> None:
        conf = [part for name, value in SESSION.items() for part in ("--conf", f"{name}={value}")]
        options = ["--dir", str(self.folder.path), "--master", "local[2]", *conf]
        command = [*KASPAR, "pipeline", "run", *options, *map(str, arguments)]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [*KASPAR, "pipeline", arguments[0], "--dir", str(self.folder.path), *arguments[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def statuses(self) -> dict[str, dict[str, Any]]:
        done = self.command("list", "--json")
        assert done.returncode == 0, done.stderr
        return {status["name"]: status for status in json.loads(done.stdout)}

    def state(self, name: str) -> str:
        return str(self.statuses().get(name, {}).get("state"))

    def wait_for(self, name: str, state: str) -> dict[str, Any]:
        wait_until(lambda: self.state(name) == state, f"{name} is {state}", self.text)
        return self.statuses()[name]

    def kill_host(self) -> None:
        self._kill(self._running().process)

    def kill_jvm(self) -> None:
        jvm = self._running().jvm
        assert jvm is not None
        self._kill(jvm)

    def _running(self) -> Any:
        running = self.folder.host()
        assert running is not None
        return running

    def _kill(self, process: ProcessId) -> None:
        assert process.is_running()
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not process.is_running(), "the process has ended")

    def kill(self) -> None:
        """The supervisor itself."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(120)

    def text(self) -> str:
        logs = [self._output, self.folder.host_log, *sorted(self.folder.path.glob("pipelines/*/pipeline.log"))]
        return "\n".join(f"--- {log}\n{log.read_text()[-3000:]}" for log in logs if log.exists())
