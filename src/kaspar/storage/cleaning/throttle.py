"""Limits how fast all cleaner threads together read and write: log.cleaner.io.max.bytes.per.second.

As in Kafka, bytes count when they are read to map the keys, read to be filtered, or written. A thread waits after each
chunk, in short steps, so that it soon notices a stop or a new rate. Unused bandwidth is not saved up.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kaspar.base.clock import Clock
from kaspar.storage.cleaning.errors import CleaningStopped

UNLIMITED = float("inf")
_LONGEST_STEP_SECONDS = 0.1


class Spending(Protocol):
    """Counts bytes that were read or written, and may wait: the throttle, or something that forwards to it."""

    def spent(self, count: int, stopped: Callable[[], bool]) -> None: ...


class Throttle:
    def __init__(self, bytes_per_second: float, clock: Clock, sleep: Callable[[float], None] = time.sleep) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._owed_bytes = 0.0
        self._looked_at = clock.monotonic()

    @property
    def bytes_per_second(self) -> float:
        return self._bytes_per_second

    @bytes_per_second.setter
    def bytes_per_second(self, rate: float) -> None:
        """Change the rate. Threads that are waiting use the new rate for the rest of their wait."""
        with self._lock:
            self._pay()
            self._bytes_per_second = rate

    def spent(self, count: int, stopped: Callable[[], bool] = lambda: False) -> None:
        """Count bytes that were read or written. Waits until the rate allows them, or until `stopped` returns True."""
        with self._lock:
            self._pay()
            self._owed_bytes += count
        while not stopped():
            with self._lock:
                self._pay()
                seconds = self._owed_bytes / self._bytes_per_second
            if seconds <= 0:
                return
            self._sleep(min(seconds, _LONGEST_STEP_SECONDS))

    def _pay(self) -> None:
        """Subtract what the rate has allowed since the last call."""
        now = self._clock.monotonic()
        paid = (now - self._looked_at) * self._bytes_per_second
        self._owed_bytes = max(0.0, self._owed_bytes - paid) if self._bytes_per_second < UNLIMITED else 0.0
        self._looked_at = now


@dataclass(frozen=True, slots=True)
class Pace:
    """How one thread reads: its chunk size, the throttle that limits its rate, and whether it is stopped."""

    chunk_bytes: int
    throttle: Spending
    stopped: Callable[[], bool] = lambda: False

    def spent(self, count: int) -> None:
        self.throttle.spent(count, self.stopped)
        self.check()

    def check(self) -> None:
        if self.stopped():
            raise CleaningStopped("cleaning was stopped")
