"""Requests about several keys: each has its own coordinator, and their responses are combined."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from kaspar.network.api import HandlerResult, Response
from kaspar.protocol.schema import Message

R = TypeVar("R", bound=Response)


def combined(parts: Iterable[Message | Awaitable[Message]], combine: Callable[[list[Message]], R]) -> HandlerResult:
    """Without a task if all parts are there."""
    pending = list(parts)
    ready = [part for part in pending if isinstance(part, Message)]
    if len(ready) == len(pending):
        return combine(ready)
    return _combined_later(pending, combine)


async def _combined_later(parts: list[Message | Awaitable[Message]], combine: Callable[[list[Message]], R]) -> R:
    return combine([part if isinstance(part, Message) else await part for part in parts])
