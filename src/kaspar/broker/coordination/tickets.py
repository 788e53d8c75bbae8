"""Who waits for a coordinator's answer: a request, which is answered at once if its answer is there when it returns."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.protocol.schema import Message

Refusal: TypeAlias = Callable[[ErrorCode], Message]
"""The response of an API in which nothing but this code is told."""


class RequestTicket:
    """The first answer counts. Nobody need be there any longer to hear it: then it is dropped.

    Whoever waits for it says so once: with a function that is called with the answer as soon as it is there, or by
    awaiting it. A rebalance answers hundreds at once, and a task for each would cost more than the rebalance.
    """

    __slots__ = ("_hear", "_translate", "_waiting", "message", "refused")

    def __init__(self, refused: Refusal) -> None:
        self.refused = refused
        self.message: Message | None = None
        self._hear: Callable[[Message], None] | None = None
        self._translate: Callable[[Message], Message] | None = None
        self._waiting: set[RequestTicket] | None = None

    def answer(self, message: Message) -> None:
        if self.message is not None:
            return
        if self._translate is not None:
            message = self._translate(message)
        self.message = message
        if self._waiting is not None:
            self._waiting.discard(self)
        if self._hear is not None:
            self._hear(message)

    def refuse(self, code: ErrorCode) -> None:
        if self.message is None:
            self.answer(self.refused(code))

    def wait_among(self, waiting: "set[RequestTicket]") -> "RequestTicket":
        """The answer is not there yet. Until it comes the ticket is one of `waiting`."""
        self._waiting = waiting
        waiting.add(self)
        return self

    def translated_by(self, translate: Callable[[Message], Message]) -> "RequestTicket":
        """Whoever waits hears another form of the answer: an older version's."""
        assert self.message is None
        self._translate = translate
        return self

    def when_answered(self, hear: Callable[[Message], None]) -> None:
        """`hear` must not fail: it is called in the midst of a coordinator's work."""
        assert self._hear is None
        if self.message is not None:
            hear(self.message)
        else:
            self._hear = hear

    def __await__(self) -> Generator[Any, None, Message]:
        if self.message is None:
            heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

            def hear(message: Message) -> None:
                if not heard.done():
                    heard.set_result(None)

            self.when_answered(hear)
            yield from heard
        assert self.message is not None
        return self.message


Answer: TypeAlias = Message | RequestTicket


def translated(answer: Answer, translate: Callable[[Message], Message]) -> Answer:
    return answer.translated_by(translate) if isinstance(answer, RequestTicket) else translate(answer)
