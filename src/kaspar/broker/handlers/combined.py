"""Combines the responses to a request for several keys, each of which has its own coordinator."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from kaspar.network.api import HandlerResult, Response
from kaspar.protocol.schema import Message

R = TypeVar("R", bound=Response)


def combined(parts: Iterable[Message | Awaitable[Message]], combine: Callable[[list[Message]], R]) -> HandlerResult:
    """Combine the parts, without a task if all of them are there."""
    pending = list(parts)
    ready = [part for part in pending if isinstance(part, Message)]
    if len(ready) == len(pending):
        return combine(ready)
    return _combined_later(pending, combine)


async def _combined_later(parts: list[Message | Awaitable[Message]], combine: Callable[[list[Message]], R]) -> R:
    return combine([part if isinstance(part, Message) else await part for part in parts])
