"""Writes log lines in a thread, so that no caller waits for a terminal, a pipe or a disk.

Rules:
- Lines are put into a bounded queue. Lines that do not fit, or cannot be written, are lost and counted; a separate line
  reports the number as soon as lines can be written again.
- The caller waits until an ERROR is written, since it may be the last line before a crash: briefly, and not while an
  earlier line is stuck.
- When the process ends, queued lines are written, unless that takes longer than LAST_LINES_S.
"""

import logging
import threading
from collections import deque
from typing import Any, Final, TypeAlias

MAX_WAITING_CHARACTERS: Final = 4 * 1024 * 1024
ERROR_WAITS_S: Final = 0.1
LAST_LINES_S: Final = 2.0

Target: TypeAlias = "logging.StreamHandler[Any]"


class LogWriter(logging.Handler):
    """Wraps a handler that formats the lines and owns the stream."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.lost = 0
        """How many lines were lost in total."""
        self._lost_unreported = 0
        self._waiting: deque[str] = deque()
        self._waiting_characters = 0
        self._changed = threading.Condition(threading.Lock())
        self._stuck = False
        self._ending = False
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.target.format(record)
        except Exception:
            self.handleError(record)
            return
        with self._changed:
            self._enqueue(line)
            if self._thread is None and not self._ending:
                self._thread = threading.Thread(target=self._run, name="kaspar-log", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        if record.levelno >= logging.ERROR and not self._stuck:
            self._stuck = not self.wait(ERROR_WAITS_S)

    def _enqueue(self, line: str) -> None:
        if self._waiting_characters + len(line) > MAX_WAITING_CHARACTERS:
            self._lose(1)
        else:
            self._waiting.append(line)
            self._waiting_characters += len(line)

    def _lose(self, count: int) -> None:
        self.lost += count
        self._lost_unreported += count

    def wait(self, timeout_s: float) -> bool:
        """Wait until the queue is empty. Returns False if that takes longer than `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def flush(self) -> None:
        """Write the queued lines. Called when the process ends, before `close`."""
        self.wait(LAST_LINES_S)

    def close(self) -> None:
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        super().close()

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                line = self._waiting[0]  # stays in the queue until it is written, for `wait`
                unreported, self._lost_unreported = self._lost_unreported, 0
            written = self._write(line)
            if written and unreported:
                written = self._report_lost(unreported)
                unreported = 0 if written else unreported
            with self._changed:
                self._waiting.popleft()
                self._waiting_characters -= len(line)
                self._lost_unreported += unreported
                if not written:
                    self._lose(1)
                self._stuck = False
                self._changed.notify_all()

    def _write(self, line: str) -> bool:
        try:
            self.target.stream.write(line + self.target.terminator)
            self.target.stream.flush()
        except (OSError, ValueError):  # a full disk, a pipe without a reader, a closed file
            return False
        return True

    def _report_lost(self, count: int) -> bool:
        sentence = "log lines were lost: they could not be written fast enough"
        record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, sentence, (), None)
        record.values = {"lines": count}
        return self._write(self.target.format(record))
