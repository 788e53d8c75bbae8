"""How fast the cleaner reads and writes, all of its threads together: log.cleaner.io.max.bytes.per.second.

As in Kafka, every byte counts that is read to learn the keys, read to be filtered, or written. A piece is paid for
after it was moved: whoever owes waits, in short steps, so that a stop or a new rate is noticed soon. Time in which
nothing was moved is not saved up.
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
    """Who wants to know of moved bytes: the throttle, or somebody who asks it."""

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
        """May be changed while threads wait: what is left of their debt is paid at the new rate."""
        with self._lock:
            self._pay()
            self._bytes_per_second = rate

    def spent(self, count: int, stopped: Callable[[], bool] = lambda: False) -> None:
        """`count` bytes were moved. Waits until the rate allows for them, or until `stopped` says so."""
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
        """Time has paid for some of the bytes."""
        now = self._clock.monotonic()
        paid = (now - self._looked_at) * self._bytes_per_second
        self._owed_bytes = max(0.0, self._owed_bytes - paid) if self._bytes_per_second < UNLIMITED else 0.0
        self._looked_at = now


@dataclass(frozen=True, slots=True)
class Pace:
    """How one thread goes about its work: in pieces of so many bytes, no faster than it may, until it is stopped."""

    piece_bytes: int
    throttle: Spending
    stopped: Callable[[], bool] = lambda: False

    def spent(self, count: int) -> None:
        self.throttle.spent(count, self.stopped)
        self.check()

    def check(self) -> None:
        if self.stopped():
            raise CleaningStopped("cleaning was stopped")
