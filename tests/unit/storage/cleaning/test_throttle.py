"""How long the cleaner waits for the bytes that it moves."""

import math
import threading

import pytest

from kaspar.base.clock import ManualClock, SystemClock
from kaspar.storage.cleaning.errors import CleaningStopped
from kaspar.storage.cleaning.throttle import UNLIMITED, Pace, Throttle


class Waits:
    """A clock on which only waiting takes time."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.steps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.steps.append(seconds)
        self.clock.advance(math.ceil(seconds * 1000))

    def throttle(self, bytes_per_second: float) -> Throttle:
        return Throttle(bytes_per_second, self.clock, self.sleep)


def test_bytes_take_as_long_as_the_rate_says() -> None:
    waits = Waits()
    throttle = waits.throttle(1000)
    throttle.spent(500)
    assert sum(waits.steps) == pytest.approx(0.5)
    throttle.spent(250)
    assert sum(waits.steps) == pytest.approx(0.75)


def test_time_that_passed_by_itself_is_not_waited_for_again() -> None:
    waits = Waits()
    throttle = waits.throttle(1000)
    throttle.spent(0)
    waits.clock.advance(400)
    throttle.spent(500)
    assert sum(waits.steps) == pytest.approx(0.5), "but it is not saved up for later"


def test_no_limit_is_no_wait() -> None:
    waits = Waits()
    waits.throttle(UNLIMITED).spent(1 << 60)
    assert waits.steps == []


def test_long_waits_are_made_of_short_steps_so_that_a_stop_is_noticed() -> None:
    waits = Waits()
    throttle = waits.throttle(1)
    throttle.spent(1000, stopped=lambda: len(waits.steps) == 3)
    assert len(waits.steps) == 3
    assert max(waits.steps) <= 0.1


def test_new_rate_applies_to_current_waiters() -> None:
    clock = ManualClock()

    def sleep(seconds: float) -> None:
        clock.advance(math.ceil(seconds * 1000))
        throttle.bytes_per_second = 1_000_000

    throttle = Throttle(1, clock, sleep)
    throttle.spent(10_000)
    assert clock.monotonic() == pytest.approx(0.11, abs=0.01)
    assert throttle.bytes_per_second == 1_000_000


def test_threads_share_one_rate() -> None:
    throttle = Throttle(100_000, SystemClock())
    clock = SystemClock()
    begin = clock.monotonic()
    threads = [threading.Thread(target=throttle.spent, args=(5_000,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() - begin >= 0.2 - 0.01


def test_pace_ends_with_an_exception_when_it_is_stopped() -> None:
    stopped = False
    pace = Pace(1024, Waits().throttle(UNLIMITED), lambda: stopped)
    pace.check()
    pace.spent(10)
    stopped = True
    with pytest.raises(CleaningStopped):
        pace.check()
    with pytest.raises(CleaningStopped):
        pace.spent(10)
