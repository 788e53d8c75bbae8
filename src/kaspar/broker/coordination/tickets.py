"""Requests that wait for a coordinator's response."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.network.api import LaterResponse
from kaspar.protocol.schema import Message

Refusal: TypeAlias = Callable[[ErrorCode], Message]
"""The response of an API with this error, and nothing else."""


class RequestTicket(LaterResponse):
    """The first response counts. If its client is gone, it is dropped.

    A response is received by a function that is called with it, or by awaiting the ticket. A rebalance responds to
    hundreds of requests at once, and a task for each would cost more than the rebalance.
    """

    __slots__ = ("_receive", "_translate", "_waiting", "message", "refused")

    def __init__(self, refused: Refusal) -> None:
        self.refused = refused
        self.message: Message | None = None
        self._receive: Callable[[Message], None] | None = None
        self._translate: Callable[[Message], Message] | None = None
        self._waiting: set[RequestTicket] | None = None

    def respond(self, message: Message) -> None:
        if self.message is not None:
            return
        if self._translate is not None:
            message = self._translate(message)
        self.message = message
        if self._waiting is not None:
            self._waiting.discard(self)
        if self._receive is not None:
            self._receive(message)

    def refuse(self, code: ErrorCode) -> None:
        if self.message is None:
            self.respond(self.refused(code))

    def wait_among(self, waiting: "set[RequestTicket]") -> "RequestTicket":
        """Until there is a response the ticket is one of `waiting`."""
        self._waiting = waiting
        waiting.add(self)
        return self

    def translated_by(self, translate: Callable[[Message], Message]) -> "RequestTicket":
        """The response is changed to the form of an older version."""
        assert self.message is None
        self._translate = translate
        return self

    def on_response(self, receive: Callable[[Message], None]) -> None:
        """`receive` must not fail: it is called while a coordinator carries out a decision."""
        assert self._receive is None
        if self.message is not None:
            receive(self.message)
        else:
            self._receive = receive

    def __await__(self) -> Generator[Any, None, Message]:
        if self.message is None:
            received: asyncio.Future[None] = asyncio.get_running_loop().create_future()

            def receive(message: Message) -> None:
                if not received.done():
                    received.set_result(None)

            self.on_response(receive)
            yield from received
        assert self.message is not None
        return self.message


Response: TypeAlias = Message | RequestTicket
"""The response to a request, or what it waits on."""


def translated(response: Response, translate: Callable[[Message], Message]) -> Response:
    return response.translated_by(translate) if isinstance(response, RequestTicket) else translate(response)
