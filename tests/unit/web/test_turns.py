"""Turns of requests on the event loop."""

import asyncio
import time

from kaspar.web.turns import LONGEST_S, Turns


def test_a_turn_is_over_after_a_while_and_begins_again() -> None:
    async def work() -> None:
        turn = Turns().begin()
        seen = [turn.is_over]
        until = time.perf_counter() + LONGEST_S
        while time.perf_counter() < until:
            pass
        seen.append(turn.is_over)
        await turn.next()
        seen.append(turn.is_over)
        assert seen == [False, True, False]

    asyncio.run(work())


def test_of_those_that_have_given_way_one_goes_on_at_a_time() -> None:
    async def work() -> None:
        turns, rounds = Turns(), 0
        gone_on: list[int] = []

        async def request() -> None:
            turn = turns.begin()
            for _ in range(3):
                await turn.next()
                gone_on.append(rounds)

        requests = [asyncio.create_task(request()) for _ in range(5)]
        while not all(each.done() for each in requests):
            rounds += 1
            await asyncio.sleep(0)
        assert len(gone_on) == len(set(gone_on)) == 15

    asyncio.run(work())
