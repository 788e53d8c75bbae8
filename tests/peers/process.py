"""A broker in a process of its own: start, readiness, stop, kill, restart on the same folder, log.

`ApacheKafka` and `KasparProcess` have this one face, so a test or benchmark that is handed a broker need not know which
it is. A broker's folder holds `server.properties`, `broker.log` (output and errors of all its runs) and `data/`.
"""

import abc
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.brokers import Leader
from tests.peers.wire import free_port, leads, responds_to_api_versions

START_TIMEOUT_SECONDS = 60.0
STOP_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.01


class BrokerStartError(Exception):
    """The broker ended, or did not respond in time; the text holds the end of its log."""


class BrokerProcess(abc.ABC):
    def __init__(
        self,
        folder: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.properties_file = folder / "server.properties"
        self.log_file = folder / "broker.log"
        self.host = "127.0.0.1"
        self.port = port or free_port()
        self.overrides = dict(overrides or {})
        self.environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @abc.abstractmethod
    def command(self) -> list[str]:
        """The command line that runs the broker in the foreground."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Write the settings and whatever must be in the folder before a start. May be called again."""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def unexpected_errors(self) -> list[str]:
        """What was logged as an ERROR since the last call and nobody expected, tracebacks included; of ours only."""
        return []

    def lead(self, topic: str, partitions: Sequence[int]) -> bool:
        """Whether it leads all these partitions and takes requests for them."""
        return leads(self.host, self.port, topic, partitions)

    def leader(self, topic: str, partition: int) -> Leader:
        """This broker: there is no other."""
        return Leader(self.port, self.data_dir)

    def launch(self) -> None:
        """Start the process and return at once. `prepare()` was called before."""
        assert not self.running, "the broker is already running"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, **self.environment},
            )

    def wait_ready(self, timeout: float = START_TIMEOUT_SECONDS) -> None:
        """Return once the broker responds to requests."""
        deadline = time.monotonic() + timeout
        while not responds_to_api_versions(self.host, self.port):
            if not self.running:
                raise BrokerStartError(f"the broker ended while it started:\n{self.log_text()[-3000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerStartError(f"the broker did not respond within {timeout} s:\n{self.log_text()[-3000:]}")
            time.sleep(_POLL_SECONDS)

    def start(self, timeout: float = START_TIMEOUT_SECONDS) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self.launch()
        self.wait_ready(timeout)
        return self

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, timeout: float = STOP_TIMEOUT_SECONDS) -> int:
        """Wait until the process ends by itself; its exit code."""
        assert self._process is not None
        return self._process.wait(timeout)

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> int | None:
        """SIGTERM, then SIGKILL if that did not end it in time. Returns the exit code; safe to call twice."""
        if self._process is not None and self.running:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._reap()

    def kill(self) -> int | None:
        """SIGKILL: nothing of the broker's own runs any more."""
        if self._process is not None and self.running:
            self._process.kill()
        return self._reap()

    def restart(self) -> Self:
        """Stop cleanly and start again on the same folder and port."""
        self.stop()
        return self.start()

    def _reap(self) -> int | None:
        return self._process.wait() if self._process is not None else None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def write_properties(path: Path, values: Mapping[str, str]) -> None:
    """A file in the format of Java's properties, as far as settings need it."""
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
