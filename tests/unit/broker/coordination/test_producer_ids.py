"""Producer ids: never given out twice, and nearly always at hand."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerId
from kaspar.broker.coordination.producer_ids import ASK_WHEN_LEFT, ProducerIds
from kaspar.controller.events import ProducerIdBlock

BLOCK = 1000


class Controller:
    def __init__(self) -> None:
        self.blocks = 0
        self.refuses: ErrorCode | None = None
        self.may_respond = asyncio.Event()
        self.may_respond.set()

    async def allocate(self) -> ProducerIdBlock:
        await self.may_respond.wait()
        if self.refuses is not None:
            raise Refused(self.refuses, "not now")
        self.blocks += 1
        return ProducerIdBlock(ProducerId((self.blocks - 1) * BLOCK), BLOCK)


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_every_id_is_given_out_once() -> None:
    async def scene() -> None:
        ids = ProducerIds(Controller().allocate)
        waited = await asyncio.gather(*(ids.next() for _ in range(2500)))
        await ids.reserve()
        taken = [ids.take() for _ in range(10)]
        assert len({*waited, *taken}) == 2510

    play(scene())


def test_nothing_is_asked_of_the_controller_before_an_id_is_needed() -> None:
    async def scene() -> None:
        controller = Controller()
        ids = ProducerIds(controller.allocate)
        await asyncio.sleep(0)
        assert (controller.blocks, ids.available) == (0, False)

    play(scene())


def test_the_next_block_is_there_before_this_one_is_used_up() -> None:
    async def scene() -> None:
        controller = Controller()
        ids = ProducerIds(controller.allocate)
        await ids.reserve()
        for _ in range(BLOCK - ASK_WHEN_LEFT):
            ids.take()
        assert controller.blocks == 1
        ids.take()
        await asyncio.sleep(0)
        assert controller.blocks == 2
        for _ in range(BLOCK):
            ids.take()

    play(scene())


def test_a_caller_that_cannot_wait_has_to_retry() -> None:
    async def scene() -> None:
        controller = Controller()
        controller.may_respond.clear()
        ids = ProducerIds(controller.allocate)
        with pytest.raises(Refused) as refusal:
            ids.take()
        assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        controller.may_respond.set()
        await ids.reserve()
        assert ids.take() == 0
        assert controller.blocks == 1, "waiting and refused requests share one block"

    play(scene())


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR])
def test_a_controller_that_refuses_is_asked_again_by_the_next(code: ErrorCode) -> None:
    """Producers retry, whatever the controller's code was: some give up on REQUEST_TIMED_OUT, which is what a broker
    hears when the controller is lost before it responds.
    """

    async def scene() -> None:
        controller = Controller()
        controller.refuses = code
        ids = ProducerIds(controller.allocate)
        with pytest.raises(Refused) as refusal:
            await ids.next()
        assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(Refused):
            ids.take()
        await asyncio.sleep(0)
        controller.refuses = None
        assert await ids.next() == 0

    play(scene())
