"""A consumer instance: its consumer is used by one thread at a time, and a read consists of many turns.

A request for records takes turns at the consumer until it has enough records or its time is over. Other requests for
the same instance get turns in between, so two concurrent reads share the records, as in Confluent's proxy. A turn waits
for records only while enough threads are free, so any number of long requests leaves threads for others.
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
    """The threads in which consumers are used. `spare` is whether so few are busy that a turn may wait for records."""

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
        """Does not wait for threads: turns end soon by themselves, but a call that waits for a broker may take long."""
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
        """`owner` is the identity that created the instance; its credentials are used."""
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
        """Mark the instance as in use, which postpones its expiry."""
        self._expires_at = self._clock.monotonic() + self._idle_timeout_s

    @property
    def is_expired(self) -> bool:
        return self._clock.monotonic() >= self._expires_at

    async def use(self, function: Callable[[BufferedConsumer], _Result]) -> _Result:
        """Call the function in a thread and return its result. Raises RestError."""
        async with self._lock:
            if self._is_closed:
                raise RestError(CONSUMER_INSTANCE_NOT_FOUND)
            try:
                return await self._threads.run(lambda: function(self._consumer))
            finally:
                self.touch()

    async def read(self, limits: ReadLimits, is_gone: Callable[[], Awaitable[bool]]) -> "list[Message]":
        """Read records for one response. The caller then calls `deliver` for those that the response contains, and
        `give_back` for the others."""
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
                    return taken  # the next request reports the error
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
        """Reject further requests. Returns the remaining work, a blocking call: leaving the group may take long."""
        async with self._lock:
            self._is_closed = True
            return self._consumer.close


def _turn(
    consumer: BufferedConsumer, taken: "list[Message]", size: int, max_bytes: int, wait_s: float
) -> tuple[int, bool]:
    """Take buffered records, after a fetch if there are none. The first record is taken regardless of its size. Returns
    the new size, and whether the response is full."""
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
