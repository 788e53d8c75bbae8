"""Makes it possible to wait for the signals that request a stop, and for SIGCHLD."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

_STOP: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """For the main thread only. Restores the earlier handlers on exit."""

    def __init__(self) -> None:
        self.stop_requested = False
        self.is_impatient = False
        """Ctrl-C was pressed again, or after another signal: stop without waiting."""
        self._earlier: dict[signal.Signals, Any] = {}

    def wait(self, timeout_s: float | None) -> None:
        """Wait until one of these signals arrives, or until the timeout."""
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
                continue  # nohup: continue without a terminal
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
