"""Kaspar's broker with instruments: its metrics page, its memory, a limit on its files.

with ObservedBroker(folder) as broker:
    ...
    assert broker.peak_memory_bytes() < before + 50 * MIB
    print(broker.longest_stall())
"""

import contextlib
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.peers.kaspar import KasparProcess
from tests.peers.raw_client import RawClient

MIB = 1024 * 1024

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$")
_METRICS_ADDRESS = re.compile(r"metrics are served address=(\S+)")
_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.01


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = _WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(_POLL_SECONDS)


class ObservedBroker(KasparProcess):
    """`most_files` is the limit of open files and sockets that its process is started with. `clients` are settings that
    stock clients need beside the broker's address: how they log in, and on which listener, if it is secured."""

    def __init__(
        self,
        folder: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        most_files: int | None = None,
    ) -> None:
        super().__init__(
            folder, overrides={"kaspar.metrics.listener": "127.0.0.1:0", **(overrides or {})}, environment=environment
        )
        self.most_files = most_files
        self.clients: dict[str, str | int] = {}

    def command(self) -> list[str]:
        limit = ["prlimit", f"--nofile={self.most_files}:{self.most_files}"] if self.most_files else []
        return [*limit, *super().command()]

    def client(self, *, timeout: float = 30.0) -> RawClient:
        return RawClient(self.port, timeout=timeout)

    # The metrics page

    def get(self, page: str) -> tuple[int, str]:
        """The status and the text of one of its HTTP pages."""
        try:
            with urllib.request.urlopen(f"http://{self._metrics_address()}/{page}", timeout=_WAIT_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> dict[str, float]:
        """Every sample of the metrics page, by its name and labels as they are written there."""
        status, text = self.get("metrics")
        assert status == 200
        return {match[1]: float(match[2]) for line in text.splitlines() if (match := _SAMPLE.match(line))}

    def _metrics_address(self) -> str:
        wait_until(lambda: bool(_METRICS_ADDRESS.search(self.log_text())), "the broker says where its metrics are")
        return str(_METRICS_ADDRESS.findall(self.log_text())[-1])

    def longest_stall(self) -> float:
        """In seconds, since the start."""
        return self.metrics()["kaspar_loop_longest_stall_seconds"]

    # The process

    def memory_bytes(self) -> int:
        return self._status("VmRSS") * 1024

    def peak_memory_bytes(self) -> int:
        """The most that was resident since the start, or since `forget_peak_memory`."""
        return self._status("VmHWM") * 1024

    def forget_peak_memory(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise AssertionError(f"/proc has no {name}")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    # The log

    def log_lines(self, text: str) -> list[str]:
        return [line for line in self.log_text().splitlines() if text in line]

    def warnings(self) -> list[str]:
        """Without those of a blocked event loop, which a busy machine may cause."""
        return [line for line in self.log_lines(" WARNING ") if "the event loop was blocked" not in line]

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log_text(), f"the broker logs '{text}'")

    def segment_files(self, topic: str, partition: int = 0) -> list[Path]:
        return sorted((self.data_dir / f"{topic}-{partition}").glob("*.log"))

    def log_size(self, topic: str, partition: int = 0) -> int:
        """Of all segments. Retried if segments are deleted or cleaned meanwhile."""
        while True:
            with contextlib.suppress(FileNotFoundError):
                return sum(path.stat().st_size for path in self.segment_files(topic, partition))
