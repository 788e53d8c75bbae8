"""Builds and encodes responses with tens of thousands of elements in slices, so that other work runs in between.

However many such requests there are, a turn of the event loop builds one slice of one of them, as with the pieces of
large requests.
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
"""How many elements are processed in one turn of the event loop. A list of at most this many is returned at once."""


class Turns(Protocol):
    """Turns of the event loop, shared by all large requests, one at a time. Implemented by `network.large_requests`."""

    def turn(self) -> AbstractAsyncContextManager[None]: ...
    def in_turns(self, steps: Steps[T]) -> Awaitable[T]: ...


async def encoded(turns: Turns, listed: Iterable[Message | None], version: int) -> list[bytes]:
    """Encode the elements of an array. None stands for an element that was examined and left out."""
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
    """The result, if there is only one step; otherwise the rest runs in turns with those of other large requests."""
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    return turns.in_turns(steps)
