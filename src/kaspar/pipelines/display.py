"""What the supervisor, or a program that runs by itself, shows of its pipelines: a line for each, updated in place on a
terminal; elsewhere a line for each change.
"""

import contextlib
from collections.abc import Sequence
from typing import TextIO

from kaspar.pipelines.lines import status_line
from kaspar.pipelines.statuses import PipelineStatus
from kaspar.spark.watching.lines import LiveLines


class Display:
    """For one thread. Nobody has to read it: errors of writing are ignored."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = LiveLines(out) if out.isatty() else None
        self._shown: dict[str, tuple[str, int]] = {}

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            if self._live is not None:
                self._live.say(line)
            else:
                print(line, file=self._out, flush=True)

    def show(self, statuses: Sequence[PipelineStatus]) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.show([status_line(status) for status in statuses])
            return
        for status in statuses:
            now = (status.state, status.restarts)
            if self._shown.get(status.name) != now:
                self.say(status_line(status))
        self._shown = {status.name: (status.state, status.restarts) for status in statuses}
