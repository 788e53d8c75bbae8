"""The demo's worker threads, and stopping them."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from kaspar.base.errors import KasparError


class Worker:
    """A background thread. Its failure stops the demo and is raised when the thread is joined."""

    def __init__(self, stop: threading.Event, work: Callable[..., None], *arguments: Any) -> None:
        self._stop = stop
        self._work = work
        self._arguments = arguments
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._problem is not None and error is None:
            raise KasparError(f"the demo stopped: {self._problem}") from self._problem

    def _run(self) -> None:
        try:
            self._work(*self._arguments)
        except Exception as problem:  # the edge of the thread
            self._problem = problem
            self._stop.set()


def listen_to_signals(stop: threading.Event) -> None:
    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
