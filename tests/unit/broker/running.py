"""A whole broker on the test's own event loop, and clients whose bytes go to it without a socket."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from kaspar.base.errors import ErrorCode
from kaspar.broker.server import Broker
from kaspar.client.core import ClientCore
from kaspar.config import BrokerSettings
from kaspar.controller.events import CreateTopics, NewTopic
from kaspar.network.connection import Connection
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.protocol.schema import Message
from kaspar.replication.partition import Partition
from tests.unit.broker.wire import RecordingTransport, receive

M = TypeVar("M", bound=Message)

PATIENCE_S = 10.0
CHUNK = 64 * 1024
BY_NAME = 12  # the newest version of Produce and of Fetch that names topics


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE_S))


@contextlib.asynccontextmanager
async def running(*folders: Path, **settings: str) -> AsyncIterator[Broker]:
    """A broker on these data folders; a setting's dots are underscores here."""
    values = {
        "node.id": "1",
        "log.dirs": ",".join(map(str, folders)),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "kaspar.metrics.listener": "",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    broker = Broker(BrokerSettings.of(values))
    try:
        await broker.start()
        yield broker
    finally:
        await broker.stop()


async def create_topic(broker: Broker, name: str, partitions: int = 1, **configs: str) -> list[Partition]:
    named = tuple((key.replace("_", "."), value) for key, value in configs.items())
    (created,) = await broker.controller.submit(CreateTopics((NewTopic(name, partitions, configs=named),)))
    assert created.outcome.error is ErrorCode.NONE, created.outcome.message
    return list(broker.partitions.by_name[name].partitions.values())


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop and its threads go on until it holds; the test's own time limit ends a wait in vain."""
    never = asyncio.Event()
    while not condition():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(never.wait(), 0.001)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """What is in a cycle stays: everything else goes with its last reference."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def alive(kind: type) -> int:
    return sum(type(thing) is kind for thing in gc.get_objects())


class Client:
    def __init__(self, broker: Broker, listener: int = 0, *, peer: str = "127.0.0.1:1") -> None:
        self.transport = RecordingTransport()
        self.connection = Connection(broker.listeners[listener], peer)
        self.connection.connection_made(self.transport)
        loop = asyncio.get_running_loop()
        self.transport.when_closed = lambda: loop.call_soon(self.connection.connection_lost, None)
        self.core = ClientCore()
        self.responses: list[Message] = []
        self._unsent = bytearray()

    def send(self, message: Message, *, version: int = BY_NAME, has_response: bool = True) -> None:
        self._unsent += self.core.send(message, version, has_response=has_response)
        self.push()

    def push(self) -> None:
        """Hand over what the broker is willing to read, as the system's socket buffers would."""
        while self._unsent and self.transport.is_reading() and not self.transport.is_closing():
            receive(self.connection, bytes(self._unsent[:CHUNK]))
            del self._unsent[:CHUNK]

    def look(self) -> list[Message]:
        """The responses so far."""
        self.push()
        self.responses += [response.message for response in self.core.receive(bytes(self.transport.sent))]
        self.transport.sent.clear()
        return self.responses

    async def response(self, response_class: type[M]) -> M:
        """The next response."""
        await until(lambda: bool(self.look()))
        response = self.responses.pop(0)
        assert isinstance(response, response_class)
        return response

    def produce(self, *batches: tuple[str, int, bytes | bytearray], acks: int = -1, timeout_ms: int = 30_000) -> None:
        topics = tuple(
            TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=bytes(batch)),))
            for topic, partition, batch in batches
        )
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)
        self.send(request, has_response=acks != 0)

    async def produced(self) -> list[PartitionProduceResponse]:
        response = await self.response(ProduceResponse)
        return [partition for topic in response.responses for partition in topic.partition_responses]

    def fetch(
        self,
        *wanted: tuple[str, int, int],
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 30,
        partition_max_bytes: int = 1 << 20,
        session_id: int = 0,
        session_epoch: int = -1,
    ) -> None:
        """Ask for (topic, partition, offset)s."""
        topics = tuple(
            FetchTopic(
                topic=topic,
                partitions=(
                    FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes),
                ),
            )
            for topic, partition, offset in wanted
        )
        self.send(
            FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                session_id=session_id,
                session_epoch=session_epoch,
                topics=topics,
                forgotten_topics_data=(),
            )
        )

    async def fetched(self) -> FetchResponse:
        return await self.response(FetchResponse)


def sizes(response: FetchResponse) -> dict[tuple[str, int], int]:
    """How many bytes of records came of each partition in the response."""
    return {
        (topic.topic, partition.partition_index): len(partition.records or b"")
        for topic in response.responses
        for partition in topic.partitions
    }
