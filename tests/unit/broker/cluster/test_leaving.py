"""A broker that stops asks the controller for what it still needs, but not while the metadata store is away."""

import asyncio
import time
from typing import cast

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.broker.cluster import leaving
from kaspar.broker.cluster.leaving import move_leaders_away, unless_away
from kaspar.controller.channel import ControllerChannel


class ScriptedController:
    """Replies to one request after the other."""

    def __init__(self, *replies: tuple[TopicPartition, ...] | ErrorCode) -> None:
        self.replies = list(replies)

    async def submit(self, event: object) -> tuple[TopicPartition, ...]:
        reply = self.replies.pop(0)
        if isinstance(reply, ErrorCode):
            raise Refused(reply, "not now")
        return reply


def move_away(controller: ScriptedController) -> None:
    asyncio.run(move_leaders_away(cast(ControllerChannel, controller), BrokerId(1), 1))


def test_leaders_are_moved_away_by_the_next_controller_if_one_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "BETWEEN_S", 0.001)
    led = (TopicPartition("t", 0),)
    controller = ScriptedController(ErrorCode.NOT_CONTROLLER, led, ErrorCode.REQUEST_TIMED_OUT, ())
    move_away(controller)
    assert not controller.replies
    refused = ScriptedController(ErrorCode.STALE_BROKER_EPOCH, ())
    move_away(refused)
    assert refused.replies == [()]


def test_a_controller_that_never_comes_back_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "BETWEEN_S", 0.001)
    monkeypatch.setattr(leaving, "WITHIN_S", 0.05)
    controller = ScriptedController(*(ErrorCode.NOT_CONTROLLER for _ in range(1000)))
    move_away(controller)
    assert controller.replies


def test_work_is_done_while_the_store_is_there() -> None:
    async def scenario() -> None:
        done: list[bool] = []

        async def work() -> None:
            await asyncio.sleep(2 * leaving.BETWEEN_S)
            done.append(True)

        await unless_away(work(), lambda: True)
        assert done

    asyncio.run(scenario())


def test_work_ends_soon_after_the_store_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "AWAY_FOR_S", 0.2)

    async def scenario() -> None:
        cancelled: list[bool] = []
        gone_at = time.monotonic() + 0.3

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        await asyncio.wait_for(unless_away(work(), lambda: time.monotonic() < gone_at), 20)
        assert cancelled
        assert time.monotonic() > gone_at

    asyncio.run(scenario())


def test_a_failure_is_the_callers() -> None:
    async def scenario() -> None:
        async def work() -> None:
            raise TimeoutError

        with pytest.raises(TimeoutError):
            await unless_away(work(), lambda: False)

    asyncio.run(scenario())
