"""Handles Ctrl-C during calls of librdkafka.

An exception inside one of its callbacks is lost, or ends the call with a SystemError. So calls that may run callbacks
are shielded: Ctrl-C during such a call is raised after it.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """Handles SIGINT inside its `with` block. Does nothing outside the main thread, because others get no signals."""

    def __init__(self) -> None:
        self._shields = 0
        self._came = False
        self._previous: Any = None
        self._handles = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._handles:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handles:
            signal.signal(signal.SIGINT, self._previous)

    @contextlib.contextmanager
    def shield(self) -> Iterator[None]:
        """Delay Ctrl-C until the end of this block, and then raise KeyboardInterrupt."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self._came and self._shields == 0:
                self._came = False
                raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._shields == 0:
            raise KeyboardInterrupt
        self._came = True
