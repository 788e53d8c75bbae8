"""A consumer instance: its consumer, used by one thread at a time, and reading over many turns.

A request for records has a turn at the consumer again and again until it has enough or its time is up; other requests
for the same instance have theirs in between, so two that read at once share the records, as in Confluent's proxy. A
turn waits for records only while there are threads to spare. So any number of long requests leave threads for others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.base.clock import Clock
from kaspar.callers.identities import Identity
from kaspar.rest.consuming.consumer import BufferedConsumer
from kaspar.rest.consuming.options import InstanceOptions
from kaspar.rest.consuming.patterns import TopicPattern
from kaspar.rest.errors import CONSUMER_INSTANCE_NOT_FOUND, RestError

if TYPE_CHECKING:
    from confluent_kafka import Message

_Result = TypeVar("_Result")
_MAX_INT: Final = (1 << 31) - 1


class TurnThreads:
    """The threads in which consumers are used. `spare` is whether a turn may wait in one."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._busy = 0
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="rest-consumer")

    @property
    def spare(self) -> bool:
        return self._busy < self._threads // 2

    async def run(self, function: Callable[[], _Result]) -> _Result:
        self._busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, function)
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Turns end soon by themselves; a call that waits for a broker may take longer, and is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    timeout_ms: int
    max_bytes: int
    turn_s: float


class ConsumerInstance:
    def __init__(
        self,
        group: str,
        name: str,
        owner: Identity,
        options: InstanceOptions,
        consumer: BufferedConsumer,
        threads: TurnThreads,
        clock: Clock,
        idle_timeout_ms: int,
    ) -> None:
        """`owner` is who created it, and whose credentials it has."""
        self.group = group
        self.name = name
        self.owner = owner
        self.options = options
        self.pattern: TopicPattern | None = None
        self.pattern_checked_at = 0.0
        self._consumer = consumer
        self._threads = threads
        self._clock = clock
        self._idle_timeout_s = idle_timeout_ms / 1000
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._expires_at = 0.0
        self.touch()

    def touch(self) -> None:
        """It is in use."""
        self._expires_at = self._clock.monotonic() + self._idle_timeout_s

    @property
    def is_expired(self) -> bool:
        return self._clock.monotonic() >= self._expires_at

    async def use(self, function: Callable[[BufferedConsumer], _Result]) -> _Result:
        """What the function returns, which is called in a thread. Raises RestError."""
        async with self._lock:
            if self._is_closed:
                raise RestError(CONSUMER_INSTANCE_NOT_FOUND)
            try:
                return await self._threads.run(lambda: function(self._consumer))
            finally:
                self.touch()

    async def read(self, limits: ReadLimits, is_gone: Callable[[], Awaitable[bool]]) -> "list[Message]":
        """Records for one response. They are the consumer's again if they are put back (`give_back`); otherwise
        `deliver` says that a response has them."""
        deadline = self._clock.monotonic() + limits.timeout_ms / 1000
        min_bytes = self.options.fetch_min_bytes if self.options.fetch_min_bytes >= 0 else _MAX_INT
        taken: list[Message] = []
        size = 0
        while True:
            waits = self._threads.spare
            left_s = deadline - self._clock.monotonic()
            wait_s = max(0.0, min(limits.turn_s, left_s)) if waits else 0.0
            turn = partial(_turn, taken=taken, size=size, max_bytes=limits.max_bytes, wait_s=wait_s)
            try:
                size, is_full = await self.use(turn)
            except RestError:
                if taken:
                    return taken  # the next request gets the error
                raise
            if is_full or size > min_bytes or self._clock.monotonic() >= deadline or await is_gone():
                return taken
            if not waits:
                await asyncio.sleep(max(0.0, min(limits.turn_s, left_s)))

    async def deliver(self, messages: "Sequence[Message]") -> None:
        if messages:
            await self.use(lambda consumer: consumer.advance(messages))

    async def give_back(self, messages: "Sequence[Message]") -> None:
        if messages:
            await self.use(lambda consumer: consumer.put_back(messages))

    async def close(self) -> Callable[[], None]:
        """No request uses it any more. Returns what is left to do, which blocks: leaving the group may take long."""
        async with self._lock:
            self._is_closed = True
            return self._consumer.close


def _turn(
    consumer: BufferedConsumer, taken: "list[Message]", size: int, max_bytes: int, wait_s: float
) -> tuple[int, bool]:
    """Takes what is there, and fetches if that is nothing. The first record is taken however large it is. Returns the
    size, and whether there is no room for the next record."""
    if consumer.peek() is None:
        consumer.fill(wait_s)
    while (message := consumer.peek()) is not None:
        larger = size + _size_of(message)
        if taken and larger >= max_bytes:
            return size, True
        taken.append(consumer.take())
        size = larger
    return size, size >= max_bytes


def _size_of(message: "Message") -> int:
    key, value = message.key(), message.value()
    return len(key or b"") + len(value or b"")
