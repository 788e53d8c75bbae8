"""Requests that wait for a coordinator's response."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.network.api import LaterResponse
from kaspar.protocol.schema import Message

Refusal: TypeAlias = Callable[[ErrorCode], Message]
"""Returns the response of an API with this error, and nothing else."""


class RequestTicket(LaterResponse):
    """A request that waits for its response. Only the first response counts. It is dropped if the client has gone.

    A response is received by a callback, or by awaiting the ticket. A rebalance responds to hundreds of requests at
    once, and a task for each would cost more than the rebalance.
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
        """Keep the ticket in `waiting` until there is a response."""
        self._waiting = waiting
        waiting.add(self)
        return self

    def translated_by(self, translate: Callable[[Message], Message]) -> "RequestTicket":
        """Change the response to the form of an older version."""
        assert self.message is None
        self._translate = translate
        return self

    def on_response(self, receive: Callable[[Message], None]) -> None:
        """Call `receive` with the response. It must not fail, because a coordinator is carrying out a decision."""
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
"""The response to a request, or the ticket on which it waits."""


def translated(response: Response, translate: Callable[[Message], Message]) -> Response:
    return response.translated_by(translate) if isinstance(response, RequestTicket) else translate(response)
