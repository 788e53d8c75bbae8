"""Requests about several groups: each is its own coordinator's to answer, and the answers are put together."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from kaspar.broker.handlers import Answer, Response
from kaspar.protocol.schema import Message

R = TypeVar("R", bound=Response)


def together(answers: Iterable[Message | Awaitable[Message]], response: Callable[[list[Message]], R]) -> Answer:
    """Made at once if all are there."""
    waited_for = list(answers)
    there = [answer for answer in waited_for if isinstance(answer, Message)]
    if len(there) == len(waited_for):
        return response(there)
    return _together_later(waited_for, response)


async def _together_later(answers: list[Message | Awaitable[Message]], response: Callable[[list[Message]], R]) -> R:
    return response([answer if isinstance(answer, Message) else await answer for answer in answers])
