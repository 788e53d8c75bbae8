"""What happened in a simulation, in order: faults, decisions, what brokers logged, what clients saw."""

import logging
from collections.abc import Callable

from tests.sim.virtual_loop import PROCESS


class Trace:
    """Empty unless it is wanted: most simulations pass, and one that fails is run again with it."""

    def __init__(self, time: Callable[[], float], *, wanted: bool) -> None:
        self.lines: list[str] = []
        self.wanted = wanted
        self._time = time

    def note(self, who: str, what: str) -> None:
        if self.wanted:
            self.lines.append(f"{self._time():9.3f}  {who:<10} {what}")


class LogCapture(logging.Handler):
    """The brokers' log lines as part of the trace. A traceback in the log is a bug that a broker met, and survived."""

    def __init__(self, trace: Trace, on_bug: Callable[[str], None]) -> None:
        super().__init__(logging.INFO if trace.wanted else logging.ERROR)
        self._trace = trace
        self._on_bug = on_bug

    def emit(self, record: logging.LogRecord) -> None:
        process = PROCESS.get()
        values = " ".join(f"{name}={value}" for name, value in getattr(record, "values", {}).items())
        self._trace.note(str(process), f"{record.getMessage()} {values}")
        if record.exc_info and record.exc_info[1] is not None:
            problem = record.exc_info[1]
            self._trace.note(str(process), logging.Formatter().formatException(record.exc_info))
            self._on_bug(f"{process} logged: {record.getMessage()} ({problem!r})")
