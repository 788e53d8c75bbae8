"""`kaspar up` as a separate process, on free ports."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.programs import LoadError
from bench.sides import KASPAR_ENVIRONMENT

_START_S: Final = 120.0
_STOP_S: Final = 60.0
_POLL_S: Final = 0.01


class UpProcess:
    def __init__(self, folder: Path, options: Sequence[str]) -> None:
        """Start it with its data and its output in the folder. Returns at once."""
        self._output = folder / "output"
        self._began = time.monotonic()
        with self._output.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kaspar.cli.main", "up", "--dir", str(folder / "cluster"), *options],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **KASPAR_ENVIRONMENT},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def seconds_until(self, is_so: Callable[[], bool]) -> float:
        """The seconds from the start until the condition is true. Raises LoadError."""
        while not is_so():
            if self._process.poll() is not None or time.monotonic() - self._began > _START_S:
                raise LoadError(f"kaspar up is not ready: {self._output.read_text(errors='replace')[-500:]}")
            time.sleep(_POLL_S)
        return time.monotonic() - self._began

    def seconds_until_ready(self) -> float:
        """The seconds until it reports that brokers and services respond."""
        return self.seconds_until(lambda: b"Ready after" in self._output.read_bytes())

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_STOP_S)
