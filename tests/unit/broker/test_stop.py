"""A broker that stops while requests are under way, and one whose start fails half-way."""

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.broker.server import Broker
from kaspar.client.core import ClientCore
from kaspar.config import BrokerSettings
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kaspar.protocol.schema import Message
from kaspar.storage import Loaded, Log, LogManager
from tests.unit.broker.running import BY_NAME, create_topic, run, running, until
from tests.unit.storage.logs import make_batch


class SocketClient:
    """A client over a real socket, so that what a closing connection still sends can be seen."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._core = ClientCore()

    @classmethod
    async def connect(cls, port: int) -> "SocketClient":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, message: Message) -> None:
        self._writer.write(self._core.send(message, BY_NAME))

    async def everything_left(self) -> list[Message]:
        """What comes until the broker closes the connection."""
        data = await self._reader.read(-1)
        self._writer.close()
        return [response.message for response in self._core.receive(data)]


def produce(topic: str) -> ProduceRequest:
    batch = PartitionProduceData(index=0, records=bytes(make_batch()))
    data = TopicProduceData(name=topic, partition_data=(batch,))
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(data,))


def long_poll(topic: str) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=600_000,
        min_bytes=1,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
        forgotten_topics_data=(),
    )


def test_waiting_requests_get_a_response_before_the_connection_closes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            client = await SocketClient.connect(broker.port)
            client.send(long_poll("t"))
            await until(lambda: broker.pipeline.purgatories()[1].delayed == 1)
            stopping = asyncio.create_task(broker.stop())
            (response,) = await client.everything_left()
            assert isinstance(response, FetchResponse)
            await stopping

    run(scenario())


def test_a_produce_that_waits_for_its_sync_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_sync = threading.Event()
    real = Log.flush

    def flush(log: Log) -> object:
        may_sync.wait(20)
        return real(log)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", flush_messages="1")
            monkeypatch.setattr(Log, "flush", flush)
            client = await SocketClient.connect(broker.port)
            client.send(produce("t"))
            await until(lambda: broker.pipeline.purgatories()[0].delayed == 1)
            stopping = asyncio.create_task(broker.stop())
            await asyncio.sleep(0)
            may_sync.set()
            (response,) = await client.everything_left()
            assert isinstance(response, ProduceResponse)
            assert response.responses[0].partition_responses[0].error_code == 0
            await stopping

    run(scenario())


def test_no_request_is_taken_while_the_broker_stops(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = await SocketClient.connect(broker.port)
            client.send(long_poll("t"))
            await until(lambda: broker.pipeline.purgatories()[1].delayed == 1)
            for listener in broker.listeners:
                await listener.stop_accepting()
            client.send(produce("t"))
            (connection,) = broker.listeners[0].connections
            await until(lambda: not connection.transport.is_reading())
            assert partition.log.log_end_offset == 0
            await asyncio.gather(broker.stop(), client.everything_left())
            assert partition.log.log_end_offset == 0

    run(scenario())


def kaspar_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(("kaspar", "metadata-store"))}


def settings(folder: Path, listeners: str, **more: str) -> BrokerSettings:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return BrokerSettings.of(
        {"node.id": "1", "log.dirs": str(folder), "listeners": listeners, "kaspar.metrics.listener": "", **named}
    )


async def fails_to_start(broker_settings: BrokerSettings) -> str:
    broker = Broker(broker_settings)
    try:
        with pytest.raises(KasparError) as problem:
            await broker.start()
    finally:
        await broker.stop()
    return str(problem.value)


def test_a_start_that_fails_leaves_no_lock_no_port_and_no_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        before = kaspar_threads()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            two = f"A://127.0.0.1:0,B://127.0.0.1:{port}"
            security = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
            assert "in use" in await fails_to_start(settings(tmp_path, two, **security))
            metrics = {"kaspar.metrics.listener": f"127.0.0.1:{port}"}
            assert "in use" in await fails_to_start(settings(tmp_path, "PLAINTEXT://127.0.0.1:0", **metrics))
        async with running(tmp_path) as broker:
            other = settings(tmp_path, "PLAINTEXT://127.0.0.1:0")
            assert "in use" in await fails_to_start(other)
            assert broker.port > 0
        (tmp_path / "metadata.db").write_bytes(b"not a metadata file, but long enough to look like one" * 100)
        assert "metadata" in await fails_to_start(settings(tmp_path, "PLAINTEXT://127.0.0.1:0"))
        (tmp_path / "metadata.db").unlink()
        async with running(tmp_path):
            pass
        await until(lambda: kaspar_threads() <= before)

    run(scenario())


def test_a_metrics_port_that_is_taken_costs_no_recovery_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            metrics = {"kaspar.metrics.listener": f"127.0.0.1:{taken.getsockname()[1]}"}
            await fails_to_start(settings(tmp_path / "data", "PLAINTEXT://127.0.0.1:0", **metrics))
        assert not (tmp_path / "data").exists()

    run(scenario())


def test_a_start_that_is_cancelled_waits_for_the_threads_that_load_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next broker could get the folder's lock while they are still writing to it."""
    is_loading, has_ended = threading.Event(), threading.Event()

    def load(logs: LogManager, config_of: object, progress: Callable[[Loaded], None], expected: object) -> None:
        try:
            while True:
                progress(Loaded(str(tmp_path), clean=False, partitions=1, partitions_done=0, bytes_checked=0))
                is_loading.set()
        finally:
            has_ended.set()

    async def scenario() -> None:
        monkeypatch.setattr(LogManager, "load", load)
        broker = Broker(settings(tmp_path, "PLAINTEXT://127.0.0.1:0"))
        starting = asyncio.create_task(broker.start())
        await until(is_loading.is_set)
        starting.cancel()
        await asyncio.wait((starting,))
        assert has_ended.is_set()
        await broker.stop()

    run(scenario())
