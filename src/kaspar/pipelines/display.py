"""The output of the supervisor, or of a standalone program: on a terminal one line per pipeline, updated in place;
otherwise one line per change. The reason of every failure stays visible.
"""

import contextlib
from collections.abc import Sequence
from typing import TextIO

from kaspar.pipelines.lines import status_line
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.spark.watching.lines import LiveLines


class Display:
    """Used by one thread. Write errors are ignored, since the output may have no reader."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = LiveLines(out) if out.isatty() else None
        self._states: dict[str, State] = {}
        self._restarts: dict[str, int] = {}

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            if self._live is not None:
                self._live.say(line)
            else:
                print(line, file=self._out, flush=True)

    def show(self, statuses: Sequence[PipelineStatus]) -> None:
        for status in statuses:
            if status.restarts > self._restarts.get(status.name, 0) and status.reason is not None:
                self.say(f"{status.name}: failed: {status.reason}")  # even if it has been restarted by now
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.show([status_line(status) for status in statuses])
        else:
            self._say_changes(statuses)
        self._states = {status.name: status.state for status in statuses}
        self._restarts = {status.name: status.restarts for status in statuses}

    def _say_changes(self, statuses: Sequence[PipelineStatus]) -> None:
        for status in statuses:
            changed = (status.state, status.restarts) != (
                self._states.get(status.name),
                self._restarts.get(status.name),
            )
            if changed and status.state not in (State.RESTARTING, State.FAILED):  # show() has printed the failure
                self.say(status_line(status))
