"""Timers: never early, due to the millisecond, and as cheap to move and take back as to set."""

import asyncio
from collections.abc import Hashable

import pytest

from kaspar.base.clock import ManualClock, SystemClock
from kaspar.broker.timers import FIRE_AT_MOST, LEVELS, MOVE_AT_MOST, SLOTS, TICK_MS, Timers, TimerWheel
from tests.unit.broker.running import run, until

HORIZON_MS = SLOTS**LEVELS * TICK_MS


def wheel(now_ms: int = 0) -> TimerWheel[str]:
    return TimerWheel(now_ms)


@pytest.mark.parametrize("now_ms", [0, 7, 12_345_678])
@pytest.mark.parametrize("delay_ms", [1, 9, 10, 639, 640, 641, 45_000, 3_600_000, 7 * 86_400_000, 2 * HORIZON_MS + 5])
def test_a_timer_is_due_when_its_time_has_come_and_not_before(now_ms: int, delay_ms: int) -> None:
    timers = wheel(now_ms)
    timers.set("t", now_ms + delay_ms)
    assert timers.due(now_ms + delay_ms - 1) == []
    assert timers.due(now_ms + delay_ms) == ["t"]
    assert timers.due(now_ms + delay_ms) == []


def test_a_timer_that_is_set_again_counts_once_at_its_new_time() -> None:
    timers = wheel()
    timers.set("t", 100)
    timers.set("t", 50_000)
    assert len(timers) == 1
    assert timers.due(49_000) == []
    timers.set("t", 49_500)
    assert timers.due(49_500) == ["t"]


def test_a_timer_that_is_taken_back_is_never_due() -> None:
    timers = wheel()
    timers.set("t", 100)
    assert timers.cancel("t")
    assert not timers.cancel("t")
    assert timers.due(1000) == []
    assert timers.next_ms() is None


def test_what_is_due_but_was_not_handed_out_can_still_be_taken_back_or_moved() -> None:
    timers = wheel()
    for name in ("a", "b", "c"):
        timers.set(name, 10)
    assert timers.due(10, at_most=1) == ["a"]
    assert timers.cancel("b")
    timers.set("c", 500)
    assert timers.due(20) == []
    assert timers.due(500) == ["c"]


def test_timers_come_in_the_order_of_their_times() -> None:
    timers = wheel()
    for delay_ms in (90_000, 10, 700, 45_000, 650):
        timers.set(str(delay_ms), delay_ms)
    assert timers.due(100_000) == ["10", "650", "700", "45000", "90000"]


def test_nothing_is_due_before_the_moment_that_it_says_to_look_again() -> None:
    timers = wheel(5)
    timers.set("near", 777)
    timers.set("far", 999_999)
    looks = 0
    while (next_ms := timers.next_ms()) is not None:
        looks += 1
        assert timers.due(next_ms - 1) == []
        timers.due(next_ms)
    assert looks < 3 * LEVELS  # and it is not asked at every tick


def test_many_timers_of_one_slot_are_moved_in_pieces() -> None:
    """Each look costs about the same, however many there are; and meanwhile any of them can be taken back or moved."""
    timers: TimerWheel[int] = TimerWheel()
    count = 3 * MOVE_AT_MOST + 1
    for key in range(count):
        timers.set(key, 45_000)
    looks, found = 0, []
    while (next_ms := timers.next_ms()) is not None:
        looks += 1
        found += timers.due(next_ms, at_most=count)
        if looks == 2:
            timers.cancel(count - 1)
            timers.set(count - 2, 46_000)
    assert looks > 3
    assert sorted(found) == list(range(count - 1))
    assert found[-1] == count - 2, "the one that was moved"


class Fired:
    def __init__(self) -> None:
        self.keys: list[Hashable] = []

    def __call__(self, key: Hashable) -> None:
        self.keys.append(key)


def test_a_timer_calls_its_owner_when_it_is_due() -> None:
    async def scenario() -> None:
        timers = Timers(SystemClock(), on_bug=lambda problem: None)
        first, second = Fired(), Fired()
        timers.set(first, "same key", timers.now_ms() + 30)
        timers.set(second, "same key", timers.now_ms() + 1)
        timers.set(second, "other", timers.now_ms() + 1)
        timers.cancel(second, "other")
        await until(lambda: bool(first.keys))
        assert (first.keys, second.keys) == (["same key"], ["same key"])
        assert len(timers) == 0

    run(scenario())


def test_a_wall_clock_that_jumps_moves_no_timer() -> None:
    async def scenario() -> None:
        clock, fired = ManualClock(), Fired()
        timers = Timers(clock, on_bug=lambda problem: None)
        timers.set(fired, "session", timers.now_ms() + 45_000)
        clock.jump(86_400_000)
        timers.fire()
        assert fired.keys == []
        clock.jump(-2 * 86_400_000)
        clock.advance(45_000)
        timers.fire()
        assert fired.keys == ["session"]
        timers.stop()

    run(scenario())


def test_a_bug_in_one_timer_keeps_no_other_from_its_turn() -> None:
    async def scenario() -> None:
        bugs: list[Exception] = []
        clock, fired = ManualClock(), Fired()
        timers = Timers(clock, on_bug=bugs.append)

        def fails(key: Hashable) -> None:
            raise ZeroDivisionError(key)

        timers.set(fails, "a", 10)
        timers.set(fired, "b", 10)
        clock.advance(10)
        timers.fire()
        assert [type(bug) for bug in bugs] == [ZeroDivisionError]
        assert fired.keys == ["b"]

    run(scenario())


def test_thousands_of_timers_due_at_once_let_others_have_their_turn_of_the_loop() -> None:
    async def scenario() -> None:
        clock, fired = ManualClock(), Fired()
        timers = Timers(clock, on_bug=lambda problem: None)
        count = 100 * FIRE_AT_MOST

        def slow(key: Hashable) -> None:
            fired(key)
            sum(range(2000))

        for key in range(count):
            timers.set(slow, key, 10)
        clock.advance(10)
        timers.fire()
        assert 0 < len(fired.keys) < count
        turns = 0
        while len(fired.keys) < count:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 1
        assert fired.keys == list(range(count))

    run(scenario())


def test_a_timer_set_by_a_timer_is_fired_too() -> None:
    async def scenario() -> None:
        timers = Timers(SystemClock(), on_bug=lambda problem: None)
        rounds: list[Hashable] = []

        def again(key: Hashable) -> None:
            rounds.append(key)
            if len(rounds) < 3:
                timers.set(again, "round", timers.now_ms() + 1)

        timers.set(again, "round", timers.now_ms())
        await until(lambda: len(rounds) == 3)

    run(scenario())


def test_after_a_stop_nothing_fires() -> None:
    async def scenario() -> None:
        timers, fired = Timers(SystemClock(), on_bug=lambda problem: None), Fired()
        timers.set(fired, "t", timers.now_ms())
        timers.stop()
        timers.set(fired, "later", timers.now_ms())
        for _ in range(10):
            await asyncio.sleep(0)
        assert fired.keys == []

    run(scenario())
