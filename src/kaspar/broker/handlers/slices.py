"""Responses that list tens of thousands of things: made and encoded in slices, so that others have their turn.

However many such requests there are, one slice of all of them is made in a turn of the event loop, as with the pieces
of large requests.
"""

import itertools
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.protocol import codec
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.large_requests import Steps
    from kaspar.broker.server import Broker

T = TypeVar("T")

AT_ONCE: Final = 500
"""So many things are looked at in one turn of the event loop; a list of no more is answered without delay."""


async def encoded(broker: "Broker", listed: Iterable[Message | None], version: int) -> list[bytes]:
    """The elements of an array, each as bytes. None stands for something that was looked at and is not among them."""
    elements: list[bytes] = []
    rest = iter(listed)
    looked_at = AT_ONCE
    while looked_at == AT_ONCE:
        async with broker.large_requests.turn():
            some = list(itertools.islice(rest, AT_ONCE))
            elements += [codec.write(element, version) for element in some if element is not None]
        looked_at = len(some)
    return elements


def begin(broker: "Broker", steps: "Steps[T]") -> T | Awaitable[T]:
    """The result, if the first step is all; otherwise the others are taken in turns with those of large requests."""
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    return broker.large_requests.in_turns(steps)
