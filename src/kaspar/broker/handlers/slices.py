"""Responses that list tens of thousands of things: built and encoded in slices, so that others have their turn.

However many such requests there are, one slice of all of them is built in a turn of the event loop, as with the pieces
of large requests.
"""

import itertools
from collections.abc import Awaitable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TypeVar

from kaspar.network.large_requests import Steps
from kaspar.protocol import codec
from kaspar.protocol.schema import Message

T = TypeVar("T")

AT_ONCE: Final = 500
"""So many things are looked at in one turn of the event loop; a list of no more is returned without delay."""


class Turns(Protocol):
    """Turns of the event loop, one at a time for all large requests; `network.large_requests` has them."""

    def turn(self) -> AbstractAsyncContextManager[None]: ...
    def in_turns(self, steps: Steps[T]) -> Awaitable[T]: ...


async def encoded(turns: Turns, listed: Iterable[Message | None], version: int) -> list[bytes]:
    """The elements of an array, each as bytes. None stands for something that was looked at and is not among them."""
    elements: list[bytes] = []
    rest = iter(listed)
    looked_at = AT_ONCE
    while looked_at == AT_ONCE:
        async with turns.turn():
            some = list(itertools.islice(rest, AT_ONCE))
            elements += [codec.write(element, version) for element in some if element is not None]
        looked_at = len(some)
    return elements


def begin(turns: Turns, steps: Steps[T]) -> T | Awaitable[T]:
    """The result, if there is only one step; otherwise the others are taken in turns with those of large requests."""
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    return turns.in_turns(steps)
