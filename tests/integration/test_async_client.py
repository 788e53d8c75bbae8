"""The asyncio client against a real broker that is killed under it and restarted."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
import uvloop

from kaspar.client import Client
from kaspar.client.async_client import AsyncClient
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kaspar.protocol.messages.metadata import MetadataRequest
from kaspar.records import Record, build_batch
from tests.peers.kaspar import KasparProcess


def create_topic(broker: KasparProcess) -> Client:
    client = Client(broker.bootstrap)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
    client.request_controller(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), CreateTopicsResponse)
    return client


def test_killed_broker_fails_all_that_waits_and_a_new_one_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        held = await AsyncConnection.connect(broker.host, broker.port)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topic = FetchTopic(topic="t", topic_id=topic_id, partitions=(partition,))
        long_poll = FetchRequest(max_wait_ms=20_000, min_bytes=1_000_000, topics=(topic,))
        waiting = [asyncio.create_task(held.request(long_poll)) for _ in range(3)]
        async with AsyncClient(broker.bootstrap) as client:

            async def produce(number: int) -> None:
                await client.produce("t", 0, bytes(build_batch([Record(number, None, b"value")])))

            await produce(0)
            assert not any(task.done() for task in waiting)
            broker.kill()
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [ConnectionResetError] * 3
            retrying = asyncio.create_task(produce(1))
            await asyncio.to_thread(broker.start)
            await retrying
            assert await client.offset_at("t", 0, LATEST_TIMESTAMP) == 2
        await held.close()

    with KasparProcess(tmp_path) as broker:
        with create_topic(broker) as blocking:
            blocking.refresh_metadata(["t"])
            topic_id = blocking.topic_id_of("t")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test())


def test_stopped_broker_is_a_timeout(tmp_path: Path) -> None:
    async def test() -> None:
        async with await AsyncConnection.connect(broker.host, broker.port, timeout_s=0.5) as connection:
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                with pytest.raises(TimeoutError, match=r"no response from .* within 0.5 s"):
                    await connection.request(MetadataRequest(topics=None))
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            assert connection.is_closed

    with KasparProcess(tmp_path) as broker, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())
