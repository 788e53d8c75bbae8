"""Who waits for a coordinator's answer: a request, which is answered at once if its answer is there when it returns."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.protocol.schema import Message

Refusal: TypeAlias = Callable[[ErrorCode], Message]
"""The response of an API in which nothing but this code is told."""

Answer: TypeAlias = "Message | asyncio.Future[Message]"


class RequestTicket:
    """The first answer counts. Nobody need be there any longer to hear it: then it is dropped."""

    __slots__ = ("_future", "_waiting", "message", "refused")

    def __init__(self, refused: Refusal) -> None:
        self.refused = refused
        self.message: Message | None = None
        self._future: asyncio.Future[Message] | None = None
        self._waiting: set[RequestTicket] | None = None

    def answer(self, message: Message) -> None:
        if self.message is not None:
            return
        self.message = message
        future = self._future
        if future is not None:
            if self._waiting is not None:
                self._waiting.discard(self)
            if not future.done():
                future.set_result(message)

    def refuse(self, code: ErrorCode) -> None:
        if self.message is None:
            self.answer(self.refused(code))

    def wait_among(self, waiting: "set[RequestTicket]") -> "asyncio.Future[Message]":
        """The answer is not there yet: what to wait for. Until it comes the ticket is one of `waiting`."""
        self._future = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        waiting.add(self)
        return self._future
