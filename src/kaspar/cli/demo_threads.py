"""What the demo's threads share: the topic, their figures, and how they end."""

import signal
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Self

from kaspar.base.errors import KasparError

TOPIC = "page-views"
PARTITIONS = 4


@dataclass
class Figures:
    """What the threads have done so far; the view shows it."""

    produced: int = 0
    consumed: int = 0
    consumed_how: str = "consumed"
    end_offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    read_offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    last_value: str = ""


class Worker:
    """A thread beside the view. Its failure ends the demo and is raised when the thread is joined."""

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
