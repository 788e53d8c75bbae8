"""Routes the output of a host's programs to the logs of their pipelines, and all other output to the host's log."""

import datetime
import io
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

_LOG: ContextVar[TextIO | None] = ContextVar("kaspar_pipelines_log", default=None)


class RoutedOutput(io.TextIOBase):
    """Writes to the log of the printing thread's pipeline, or else to `default`."""

    def __init__(self, default: TextIO) -> None:
        self._default = default

    def write(self, text: str) -> int:
        return (_LOG.get() or self._default).write(text)

    def flush(self) -> None:
        (_LOG.get() or self._default).flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._default.fileno()


def route_output() -> None:
    """Route everything that this process prints from now on."""
    sys.stdout = RoutedOutput(sys.stdout)
    sys.stderr = RoutedOutput(sys.stderr)


class PipelineLog:
    """The log of one pipeline. Creating it routes the calling thread's output there."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", buffering=1, errors="backslashreplace")
        _LOG.set(self._file)

    def say(self, sentence: str) -> None:
        now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        self._file.write(f"[{now}] {sentence}\n")

    def close(self) -> None:
        _LOG.set(None)
        self._file.close()
