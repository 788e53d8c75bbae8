"""The demo's screen: redrawn every second on a terminal, one line per second elsewhere."""

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence


class Screen:
    def __init__(self, stop: threading.Event, seconds: float | None) -> None:
        self._stop = stop
        self._seconds = seconds
        self._drawn = 0

    def ticks(self) -> Iterator[None]:
        """Yields every second until the demo is stopped or its time is up."""
        until = time.monotonic() + self._seconds if self._seconds is not None else None
        while not self._stop.wait(min(1.0, max(0.0, until - time.monotonic())) if until is not None else 1.0):
            yield
            if until is not None and time.monotonic() >= until:
                return

    def draw(self, headline: str, details: Sequence[str], in_a_line: str) -> None:
        """On a terminal the headline with the details below it; elsewhere the headline and `in_a_line`."""
        if not sys.stdout.isatty():
            print(f"{headline}   {in_a_line}", flush=True)
            return
        lines = [headline, *details]
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        lines += [""] * (self._drawn - len(lines))
        width = shutil.get_terminal_size().columns - 1  # a line that wraps would be two
        print(up + "\n".join(f"{line[:width]}\x1b[K" for line in lines), flush=True)
        self._drawn = len(lines)
