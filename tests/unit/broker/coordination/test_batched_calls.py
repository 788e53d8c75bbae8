"""Calls to other brokers: one request at a time to each, with all that waited for it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from kaspar.base.ids import BrokerId
from kaspar.broker.coordination.batched_calls import BatchedCalls
from kaspar.broker.services import Failures, Tasks

ONE, TWO = BrokerId(1), BrokerId(2)


class Brokers:
    """They double what they are sent, when the test lets them."""

    def __init__(self) -> None:
        self.sent: list[tuple[BrokerId, list[int]]] = []
        self.may_respond = asyncio.Event()
        self.may_respond.set()
        self.bug: Exception | None = None
        self.tasks = Tasks(Failures())
        self.calls = BatchedCalls[int, int](self.send, identity=lambda call: call % 10, tasks=self.tasks, name="toys")

    async def send(self, broker_id: BrokerId, calls: Sequence[int]) -> list[int]:
        self.sent.append((broker_id, list(calls)))
        await self.may_respond.wait()
        if self.bug is not None:
            bug, self.bug = self.bug, None
            raise bug
        return [2 * call for call in calls]

    def call(self, *calls: int, broker_id: BrokerId = ONE) -> "asyncio.Future[list[int]]":
        return asyncio.gather(*(self.calls.call(broker_id, call) for call in calls))


def play(scene: Callable[[Brokers], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        brokers = Brokers()
        try:
            await asyncio.wait_for(scene(brokers), 10)
        finally:
            await brokers.tasks.cancel_all()

    asyncio.run(run())


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_what_is_called_at_once_is_one_request() -> None:
    async def scene(brokers: Brokers) -> None:
        assert await brokers.call(1, 2, 3) == [2, 4, 6]
        assert brokers.sent == [(ONE, [1, 2, 3])]

    play(scene)


def test_what_is_called_while_a_request_is_under_way_goes_with_the_next() -> None:
    async def scene(brokers: Brokers) -> None:
        brokers.may_respond.clear()
        first = brokers.call(1)
        await turns()
        others = [brokers.call(2), brokers.call(3)]
        await turns()
        assert brokers.sent == [(ONE, [1])]
        elsewhere = brokers.call(4, broker_id=TWO)
        await turns()
        assert brokers.sent[1:] == [(TWO, [4])], "another broker is not waited for"
        brokers.may_respond.set()
        assert [await first, *[await other for other in others], await elsewhere] == [[2], [4], [6], [8]]
        assert brokers.sent[2:] == [(ONE, [2, 3])]

    play(scene)


def test_a_request_has_each_identity_once_and_keeps_the_order_of_the_others() -> None:
    async def scene(brokers: Brokers) -> None:
        assert await brokers.call(1, 11, 2, 21, 12) == [2, 22, 4, 42, 24]
        assert brokers.sent == [(ONE, [1, 2]), (ONE, [11, 12]), (ONE, [21])]

    play(scene)


def test_a_caller_that_is_gone_is_not_sent_for() -> None:
    async def scene(brokers: Brokers) -> None:
        brokers.may_respond.clear()
        first = brokers.call(1)
        await turns()
        gone, here = brokers.call(2), brokers.call(3)
        await turns()
        gone.cancel()
        await turns()
        brokers.may_respond.set()
        assert (await first, await here) == ([2], [6])
        assert brokers.sent == [(ONE, [1]), (ONE, [3])]

    play(scene)


def test_a_bug_is_its_callers_and_those_behind_them_go_on() -> None:
    async def scene(brokers: Brokers) -> None:
        brokers.may_respond.clear()
        brokers.bug = ZeroDivisionError()
        first = brokers.call(1)
        await turns()
        behind = brokers.call(2)
        await turns()
        brokers.may_respond.set()
        with pytest.raises(ZeroDivisionError):
            await first
        assert await behind == [4]

    play(scene)


def test_when_the_broker_stops_nobody_is_left_waiting() -> None:
    async def scene(brokers: Brokers) -> None:
        brokers.may_respond.clear()
        first = brokers.call(1)
        await turns()
        behind = brokers.call(2)
        await turns()
        await brokers.tasks.cancel_all()
        for waiting in (first, behind):
            with pytest.raises(asyncio.CancelledError):
                await waiting

    play(scene)
