"""How the event loop's stalls are found, counted and logged."""

import asyncio
import logging
import time
from collections.abc import Callable

import pytest
import uvloop

from kaspar.base.clock import ManualClock
from kaspar.base.stalls import TICK_SECONDS, LoopMonitor, LoopStalls


def tick(stalls: LoopStalls, clock: ManualClock, *, late_ms: int = 0, cpu: float = 0.0) -> None:
    """One round of the timer, which runs `late_ms` after it was due."""
    stalls.due_at(clock.monotonic() + 0.1)
    clock.advance(100 + late_ms)
    stalls.ticked(loop_cpu_seconds=cpu)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stalls(clock: ManualClock) -> LoopStalls:
    return LoopStalls(monotonic=clock.monotonic)


def test_a_late_timer_is_a_stall(stalls: LoopStalls, clock: ManualClock) -> None:
    tick(stalls, clock, late_ms=50)
    assert stalls.longest == pytest.approx(0.05)
    assert stalls.over() == {1: 1, 10: 1, 100: 0}


def test_a_timer_a_millisecond_late_is_no_stall(stalls: LoopStalls, clock: ManualClock) -> None:
    tick(stalls, clock, late_ms=1)
    assert stalls.longest == 0
    assert stalls.over() == {1: 0, 10: 0, 100: 0}


def test_reported_work_does_not_count_again_when_it_delays_the_timer(stalls: LoopStalls, clock: ManualClock) -> None:
    stalls.due_at(clock.monotonic() + 0.1)
    clock.advance(130)
    stalls.worked(0.04)  # from 10 ms before the timer was due until 30 ms after
    stalls.ticked(loop_cpu_seconds=0)
    assert stalls.over() == {1: 1, 10: 1, 100: 0}
    assert stalls.longest == pytest.approx(0.04)


def test_work_that_ended_before_the_timer_was_due_explains_no_delay(stalls: LoopStalls, clock: ManualClock) -> None:
    stalls.due_at(clock.monotonic() + 0.1)
    clock.advance(60)
    stalls.worked(0.05)
    clock.advance(70)
    stalls.ticked(loop_cpu_seconds=0)
    assert stalls.over()[10] == 2


def test_the_recent_longest_is_forgotten_after_two_rotations_and_the_longest_never(stalls: LoopStalls) -> None:
    stalls.worked(0.02)
    stalls.rotate()
    stalls.worked(0.005)
    assert stalls.longest_recent() == 0.02
    stalls.rotate()
    assert stalls.longest_recent() == 0.005
    stalls.rotate()
    assert stalls.longest_recent() == 0
    assert stalls.longest == 0.02


def test_idle_fraction_is_what_the_thread_did_not_compute(stalls: LoopStalls, clock: ManualClock) -> None:
    assert stalls.idle_fraction() == 1
    for second in range(120):
        for _ in range(10):
            tick(stalls, clock, cpu=second * 0.25)
    assert stalls.idle_fraction() == pytest.approx(0.75, abs=0.01)


def test_a_long_stall_is_logged_and_a_flood_of_them_is_not(
    stalls: LoopStalls, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="kaspar"):
        stalls.worked(0.09)
        assert not caplog.records
        for _ in range(20):
            stalls.worked(0.25)
        assert [record.getMessage() for record in caplog.records] == ["the event loop was blocked"]
        clock.advance(10_000)
        stalls.worked(0.25)
    assert len(caplog.records) == 2


def run_monitor_for_one_window(
    monkeypatch: pytest.MonkeyPatch, stalls: LoopStalls, *, work: Callable[[], None]
) -> None:
    """The monitor on the running loop, with work to do, until its first tick; a window ends with every tick."""
    monkeypatch.setattr("kaspar.base.stalls.WINDOW_SECONDS", 0.0)

    async def scenario() -> None:
        window_ended = asyncio.Event()
        monitor = LoopMonitor(stalls, on_window=window_ended.set)
        monitor.start()
        asyncio.get_running_loop().call_soon(work)
        await asyncio.wait_for(window_ended.wait(), 10)
        monitor.stop()
        monitor.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def test_the_monitor_finds_a_stall_on_a_real_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    stalls = LoopStalls()
    run_monitor_for_one_window(monkeypatch, stalls, work=lambda: time.sleep(3 * TICK_SECONDS))
    assert stalls.longest >= 1.9 * TICK_SECONDS
    assert stalls.over()[100] == 1


def test_the_monitor_ticks_and_ends_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    stalls = LoopStalls()
    before = stalls.last_tick
    run_monitor_for_one_window(monkeypatch, stalls, work=lambda: None)
    assert stalls.last_tick > before
