"""Listeners of a whole broker: limits on connections, idle ones, and overload that all of them see."""

import asyncio
import random
import threading
import time
from pathlib import Path

import pytest

from kaspar.config import LogConfig
from kaspar.controller.events import AlterClientQuotas, QuotaAlteration
from kaspar.records import Codec
from kaspar.storage import PreparedBatch, prepare
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.test_directories import change_setting
from tests.unit.storage.logs import make_batch

SLOW = make_batch([random.Random(1).randbytes(100_000)] * 2, codec=Codec.GZIP)
TWO = {
    "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
    "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
}


def test_connections_beyond_the_limit_wait_until_there_is_room(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, max_connections="2") as broker:
            (listener,) = broker.listeners
            writers = [(await asyncio.open_connection("127.0.0.1", broker.port))[1] for _ in range(3)]
            await until(lambda: len(listener.connections) == 2)
            assert listener.accepted == 2
            writers[0].close()
            await until(lambda: listener.accepted == 3)
            _, fourth = await asyncio.open_connection("127.0.0.1", broker.port)
            await change_setting(broker, "max.connections", "10")
            await until(lambda: listener.accepted == 4)
            for writer in (*writers, fourth):
                writer.close()
            await until(lambda: not listener.connections)

    run(scenario())


def test_an_address_with_too_many_connections_is_turned_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **TWO, max_connections_per_ip="1") as broker:
            first, second = broker.listeners
            _, writer = await asyncio.open_connection("127.0.0.1", first.port)
            await until(lambda: len(first.connections) == 1)
            reader, refused = await asyncio.open_connection("127.0.0.1", second.port)
            assert await reader.read(1) == b""
            assert (second.rejected, second.accepted) == (1, 0)
            writer.close()
            refused.close()

    run(scenario())


@pytest.mark.parametrize("client_reads", [True, False])
def test_an_idle_connection_is_closed_whether_or_not_its_client_reads(tmp_path: Path, client_reads: bool) -> None:
    async def scenario() -> None:
        async with running(tmp_path, connections_max_idle_ms="20") as broker:
            client = Client(broker)
            client.transport.client_reads = client_reads
            await until(lambda: not broker.listeners[0].connections)
            assert broker.listeners[0].idle_closed == 1

    run(scenario())


def test_idle_connections_are_looked_for_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("kaspar.network.listener.SWEEP_AT_ONCE", 2)
        async with running(tmp_path, connections_max_idle_ms="20") as broker:
            clients = [Client(broker) for _ in range(7)]
            await until(lambda: not broker.listeners[0].connections)
            assert broker.listeners[0].idle_closed == len(clients)

    run(scenario())


def test_a_connection_with_a_request_under_way_is_not_idle(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, connections_max_idle_ms="20") as broker:
            await create_topic(broker, "t")
            waiting, idle = Client(broker), Client(broker)
            waiting.fetch(("t", 0, 0), max_wait_ms=600_000)
            await until(idle.transport.is_closing)
            assert not waiting.transport.is_closing()

    run(scenario())


def test_overload_that_comes_back_at_once_is_seen_by_every_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When there is room again the first listener's clients may fill it before the second's have their turn."""
    may_check = threading.Semaphore(0)

    def patched(batch: bytearray, start: int, end: int, config: LogConfig, now_ms: int) -> PreparedBatch:
        may_check.acquire(timeout=10)
        return prepare(batch, start, end, config, now_ms)

    async def scenario() -> None:
        async with running(tmp_path, **TWO, queued_max_requests="1") as broker:
            (partition,) = await create_topic(broker, "t")
            monkeypatch.setattr("kaspar.broker.produce.appender.prepare", patched)
            client = Client(broker, listener=0)
            for _ in range(6):
                client.produce(("t", 0, SLOW), acks=0)
            assert broker.backlog.waiting_count == 2
            may_check.release(2)
            await until(lambda: client.look() == [] and partition.log.log_end_offset == 4)
            await until(lambda: client.look() == [] and broker.backlog.waiting_count == 2)
            assert all(listener.overloaded for listener in broker.listeners)
            may_check.release(100)
            await until(lambda: client.look() == [] and partition.log.log_end_offset == 12)
            assert not any(listener.overloaded for listener in broker.listeners)

    run(scenario())


def test_a_refused_connection_whose_client_does_not_read_is_closed_though_a_request_is_under_way(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, connections_max_idle_ms="20") as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            client.transport.client_reads = False
            client.fetch(("t", 0, 0), max_wait_ms=600_000)
            assert client.connection.requests_under_way
            client.connection.refuse("it sent nonsense")
            await until(lambda: not broker.listeners[0].connections)

    run(scenario())


def test_a_client_that_says_nothing_is_closed_in_time_and_one_that_spoke_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, kaspar_unauthenticated_timeout_ms="50") as broker:
            await create_topic(broker, "t")
            known, stranger = Client(broker), Client(broker)
            known.fetch(("t", 0, 0))
            await until(lambda: bool(known.look()))
            await until(stranger.transport.is_closing)
            assert not known.transport.is_closing()
            assert broker.listeners[0].unidentified_closed == 1

    run(scenario())


def test_half_a_request_does_not_make_a_client_known(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, kaspar_unauthenticated_timeout_ms="50") as broker:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write((10_000).to_bytes(4))  # the size of the request
            closed = asyncio.create_task(reader.read())
            while not closed.done():  # a byte now and then, so that it is never idle
                writer.write(b"\0")
                await asyncio.wait((closed,), timeout=0.005)
            closed.exception()
            writer.close()
            assert broker.listeners[0].unidentified_closed == 1

    run(scenario())


def test_of_too_many_strangers_the_oldest_goes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, kaspar_unauthenticated_max_connections="3") as broker:
            await create_topic(broker, "t")
            known = Client(broker)
            known.fetch(("t", 0, 0))
            await until(lambda: bool(known.look()))
            strangers = [Client(broker) for _ in range(5)]
            await until(lambda: len(broker.listeners[0].connections) == 4)
            assert [each.transport.is_closing() for each in strangers] == [True, True, False, False, False]
            assert not known.transport.is_closing()

    run(scenario())


def test_new_connections_beyond_the_rate_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"quota_window_num": "2", "listener_name_plaintext_max_connection_creation_rate": "2"}
        async with running(tmp_path, **settings) as broker:
            (listener,) = broker.listeners
            writers = [(await asyncio.open_connection("127.0.0.1", broker.port))[1] for _ in range(5)]
            await until(lambda: listener.accepted == 3)  # the third one is over the rate, and the pause begins
            await until(lambda: listener.accepted == 5)
            for writer in writers:
                writer.close()

    run(scenario())


def test_an_address_that_connects_too_often_is_closed_after_a_while(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, quota_window_num="2") as broker:
            (listener,) = broker.listeners
            limit = QuotaAlteration((("ip", "127.0.0.1"),), (("connection_creation_rate", 1.0),))
            await broker.controller.submit(AlterClientQuotas((limit,)))
            _, first = await asyncio.open_connection("127.0.0.1", broker.port)
            reader, second = await asyncio.open_connection("127.0.0.1", broker.port)
            started = time.monotonic()
            assert await reader.read(1) == b""
            assert time.monotonic() - started > 0.1
            assert (listener.accepted, listener.rejected) == (1, 1)
            first.close()
            second.close()

    run(scenario())
