"""Reads that callers of one identity share."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable

import pytest

from kaspar.base.clock import ManualClock
from kaspar.console.sharing import SHARED_FOR_S, SharedReads


class Reading:
    """Counts how often it is read; waits while `gate` is closed."""

    def __init__(self) -> None:
        self.times = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.problem: Exception | None = None

    async def __call__(self) -> int:
        self.times += 1
        value = self.times
        await self.gate.wait()
        if self.problem is not None:
            raise self.problem
        return value


def _run(test: Callable[[SharedReads, ManualClock, Reading], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = ManualClock()
        reads = SharedReads(clock)
        try:
            await test(reads, clock, Reading())
        finally:
            await reads.close()

    asyncio.run(run())


def test_a_read_is_shared_for_a_second() -> None:
    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        assert await reads.get("key", read) == 1
        clock.advance(int(SHARED_FOR_S * 1000) - 1)
        assert await reads.get("key", read) == 1
        clock.advance(2)
        assert await reads.get("key", read) == 2
        assert await reads.get("another", read) == 3

    _run(test)


def test_a_read_that_takes_long_is_shared_for_longer() -> None:
    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        read.gate.clear()
        reading = asyncio.ensure_future(reads.get("key", read))
        await asyncio.sleep(0)
        clock.advance(400)
        read.gate.set()
        assert await reading == 1
        clock.advance(3_900)
        assert await reads.get("key", read) == 1
        clock.advance(200)
        assert await reads.get("key", read) == 2

    _run(test)


def test_a_hundred_callers_wait_for_one_read_however_long_it_takes() -> None:
    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        read.gate.clear()
        waiting = [asyncio.ensure_future(reads.get("key", read)) for _ in range(100)]
        await asyncio.sleep(0)
        clock.advance(10_000)
        waiting += [asyncio.ensure_future(reads.get("key", read))]
        await asyncio.sleep(0)
        read.gate.set()
        assert set(await asyncio.gather(*waiting)) == {1}

    _run(test)


def test_a_caller_that_leaves_does_not_end_the_read_of_the_others() -> None:
    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        read.gate.clear()
        leaving, staying = (asyncio.ensure_future(reads.get("key", read)) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        read.gate.set()
        assert await staying == 1

    _run(test)


def test_a_failure_reaches_all_who_wait_and_is_not_kept() -> None:
    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        read.problem = OSError("no broker")
        for _ in range(2):
            with pytest.raises(OSError, match="no broker"):
                await reads.get("key", read)
        read.problem = None
        assert await reads.get("key", read) == 3

    _run(test)


def test_after_a_change_nothing_from_before_is_shown_even_if_it_was_being_read() -> None:
    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        assert await reads.get("kept", read) == 1
        read.gate.clear()
        before = asyncio.ensure_future(reads.get("key", read))
        await asyncio.sleep(0)
        reads.forget()
        after = asyncio.ensure_future(reads.get("key", read))
        await asyncio.sleep(0)
        read.gate.set()
        assert (await before, await after) == (2, 3)
        assert await reads.get("key", read) == 3
        assert await reads.get("kept", read) == 4

    _run(test)


def test_what_is_shared_no_longer_is_freed_by_the_next_read() -> None:
    class Large:
        pass

    async def large() -> Large:
        return Large()

    async def test(reads: SharedReads, clock: ManualClock, read: Reading) -> None:
        result = weakref.ref(await reads.get("large", large))
        await reads.get("another", read)
        assert result() is not None
        clock.advance(int(SHARED_FOR_S * 1000) + 1)
        await reads.get("a third", read)
        assert result() is None

    _run(test)
