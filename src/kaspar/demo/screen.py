"""The demo's screen: redrawn in place on a terminal; otherwise printed line by line."""

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TextIO


class Heading(str):
    """A line that is shown in bold."""


class Screen:
    def __init__(self, stop: threading.Event, seconds: float | None, out: TextIO) -> None:
        self._stop = stop
        self._out = out
        self._seconds = seconds
        self._drawn = 0
        self._last_line = ""

    @property
    def rows(self) -> int:
        """How many lines can be drawn."""
        return shutil.get_terminal_size().lines - 1

    def ticks(self) -> Iterator[None]:
        """Yields every second until the demo is stopped or its time, which starts now, is up."""
        until = time.monotonic() + self._seconds if self._seconds is not None else None
        while not self._stop.wait(min(1.0, max(0.0, until - time.monotonic())) if until is not None else 1.0):
            yield
            if until is not None and time.monotonic() >= until:
                return

    def draw(self, lines: Sequence[str], in_a_line: str) -> None:
        """On a terminal, replace the lines drawn before by `lines`; otherwise print `in_a_line` if it has changed."""
        if not self._out.isatty():
            if in_a_line != self._last_line:
                print(in_a_line, file=self._out, flush=True)
            self._last_line = in_a_line
            return
        width = shutil.get_terminal_size().columns - 1  # so that no line wraps
        shown = [*lines, *[""] * (self._drawn - len(lines))][: self.rows]
        up = f"\x1b[{min(self._drawn, self.rows)}A" if self._drawn else ""
        print(up + "\n".join(f"{_styled(line, width)}\x1b[K" for line in shown), file=self._out, flush=True)
        self._drawn = len(shown)


def _styled(line: str, width: int) -> str:
    cut = line[:width]
    return f"\x1b[1m{cut}\x1b[0m" if isinstance(line, Heading) else cut
