"""Signals that ask this process to stop, and those that say that a child has ended, as something to wait for."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

_STOP: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Only for the main thread. Restores the earlier handlers at its end."""

    def __init__(self) -> None:
        self.stop_requested = False
        self.is_impatient = False
        """Ctrl-C came again, or came after another signal: end at once."""
        self._earlier: dict[signal.Signals, Any] = {}

    def wait(self, timeout_s: float | None) -> None:
        """Until any of these signals arrives, or the time is over."""
        if select.select((self._read_end,), (), (), timeout_s)[0]:
            os.read(self._read_end, 4096)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number in _STOP:
            self.is_impatient = self.is_impatient or (self.stop_requested and number == signal.SIGINT)
            self.stop_requested = True

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._earlier_fd = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for number in (*_STOP, signal.SIGCHLD):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup: go on without a terminal
            self._earlier[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._earlier_fd)
        os.close(self._read_end)
        os.close(self._write_end)
