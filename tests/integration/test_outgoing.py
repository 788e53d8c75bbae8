"""Responses on a real socket, bytes and slices of a file in turn: order, sockets that fill up, clients that stop
reading, go away or are slow, files that vanish, and data that has left the page cache.
"""

import asyncio
import contextlib
import gc
import math
import os
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kaspar.base.metrics import Counter
from kaspar.network.connection import Buffers, Connection, RequestHandler, Slot
from kaspar.storage import FileSlice, LogDirectory, OsFiles
from kaspar.storage.segments.open_files import ReadHandles, WriteHandles
from tests.unit.broker.running import alive, until, without_collector

PATIENCE_S = 20.0
FILE_BYTES = 8 << 20
CHUNK = 256 * 1024
Request = tuple[int, int, int]  # bytes before the slice, where it begins, how long it is
REQUEST = struct.Struct(">iiii")


class Server:
    """Responds to a request with some bytes and, if it names a part of the file, with that part and some bytes more."""

    name = "PLAINTEXT"
    max_request_bytes = 1_000

    def __init__(self, folder: Path) -> None:
        self.shared_buffer = bytearray(64 * 1024)
        self.shared_view = memoryview(self.shared_buffer)
        self.requests: RequestHandler = self
        self.overloaded = False
        self.turn_s = math.inf
        self.malformed_requests = Counter()
        self.path = folder / "segment"
        self.data = random.Random(5).randbytes(FILE_BYTES)
        self.path.write_bytes(self.data)
        self.readers = ReadHandles(OsFiles(), most_files=4)
        self.directory = LogDirectory(str(folder), OsFiles(), self.readers, WriteHandles(most_files=1))
        self.handled = 0
        self.slots: list[tuple[Request, Slot]] | None = None
        self.connections: list[Connection] = []
        self.lost = asyncio.Event()
        self.read_in_thread = 0
        self.disk_responds: asyncio.Event | None = None

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        request: Request = struct.unpack_from(">iii", buffer, start)
        self.handled += 1
        if self.slots is not None:
            slot = connection.take_slot()
            self.slots.append((request, slot))
            return slot
        return self.respond(request)

    def respond(self, request: Request) -> Buffers:
        before, position, size = request
        if not size:
            return (b"b" * before,)
        handle = self.readers.acquire("segment", str(self.path))
        return [b"b" * before, FileSlice(self.directory, handle, position, size), bytearray(), b"after"]

    def expected(self, request: Request) -> bytes:
        before, position, size = request
        return b"b" * before + (self.data[position : position + size] + b"after" if size else b"")

    @property
    def pins(self) -> int:
        handle = self.readers.acquire("segment", str(self.path))
        self.readers.release(handle)
        return handle.pins

    def opened(self, connection: Connection) -> None:
        self.connections.append(connection)

    def closed(self, connection: Connection) -> None:
        self.lost.set()

    async def run_blocking(self, work: Callable[[int], bytes], size: int) -> bytes:
        self.read_in_thread += 1
        if self.disk_responds is not None:
            await self.disk_responds.wait()
        return await asyncio.get_running_loop().run_in_executor(None, work, size)

    def stalled(self, seconds: float) -> None: ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        raise AssertionError("a turn is as long as it takes here")

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        raise problem


class Reader:
    """A client that reads when the test says so."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()

    async def ask(self, *requests: Request) -> None:
        frames = b"".join(REQUEST.pack(12, *request) for request in requests)
        await self._loop.sock_sendall(self.sock, frames)

    async def read(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size and (data := await self._loop.sock_recv(self.sock, min(CHUNK, size - len(got)))):
            got += data
        return bytes(got)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


@contextlib.asynccontextmanager
async def served(folder: Path, *, send_buffer: int = 0) -> AsyncIterator[tuple[Server, Reader]]:
    loop = asyncio.get_running_loop()
    server = Server(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        if send_buffer:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        client = socket.create_connection(listening.getsockname())
        sock, _ = listening.accept()
    client.setblocking(False)
    sock.setblocking(False)
    taken = await loop.connect_accepted_socket(lambda: Connection(server, "127.0.0.1:1", sock), sock)
    transport = taken[0]
    del taken  # a reference here would keep a closed connection alive
    try:
        yield server, Reader(client)
    finally:
        client.close()
        transport.abort()
        await server.lost.wait()


Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def run(scenario: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scenario, PATIENCE_S))

    return run


def mixed(count: int) -> list[Request]:
    rng = random.Random(count)
    requests: list[Request] = []
    for _ in range(count):
        size = rng.choice([0, 0, 1, 70_000, 900_000, 3_000_000])
        requests.append((rng.choice([1, 50, 5_000, 200_000]), rng.randrange(FILE_BYTES - size), size))
    return requests


@pytest.mark.parametrize("send_buffer", [0, 20_000], ids=["", "small buffer"])
def test_responses_come_whole_and_in_order(run: Run, tmp_path: Path, send_buffer: int) -> None:
    async def scenario() -> None:
        async with served(tmp_path, send_buffer=send_buffer) as (server, client):
            requests = mixed(60)
            await client.ask(*requests)
            for request in requests:
                expected = server.expected(request)
                assert await client.read(len(expected)) == expected
            assert server.pins == 0

    run(scenario())


def test_an_early_response_waits_for_those_before_it(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            server.slots = []
            requests = mixed(12)
            await client.ask(*requests)
            slots = server.slots
            await until(lambda: len(slots) == len(requests))
            for request, slot in random.Random(1).sample(slots, len(slots)):
                slot.fill(server.respond(request))
            expected = b"".join(map(server.expected, requests))
            assert await client.read(len(expected)) == expected

    run(scenario())


def test_a_client_that_does_not_read_is_not_read_from(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            request = (10, 0, FILE_BYTES)
            await client.ask(request, request)
            await until(lambda: server.handled > 0)
            await client.ask(request, request)
            expected = server.expected(request)
            assert await client.read(100) == expected[:100]
            assert server.handled == 1, "the first response has not left"
            assert await client.read(len(expected) - 100) == expected[100:]
            for _ in range(3):
                assert await client.read(len(expected)) == expected
            assert server.handled == 4

    run(scenario())


def test_a_client_that_goes_away_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (server, client):
            await client.ask(*[(100, 0, FILE_BYTES)] * 3)
            await client.read(10_000)
            assert server.pins
            client.reset()
            await server.lost.wait()
            assert server.pins == 0

    run(scenario())


def test_completed_responses_are_sent_before_a_connection_closes(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            request = (100, 0, FILE_BYTES)
            await client.ask(request, (0, 0, 1))
            expected = server.expected(request)
            assert await client.read(1_000) == expected[:1_000]
            server.connections[0].close()
            assert await client.read(2 * len(expected)) == expected[1_000:]
            await server.lost.wait()
            assert server.handled == 1

    run(scenario())


def test_a_client_that_sends_no_more_gets_its_responses(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (server, client):
            requests = mixed(5)
            await client.ask(*requests)
            client.sock.shutdown(socket.SHUT_WR)
            expected = b"".join(map(server.expected, requests))
            assert await client.read(2 * len(expected)) == expected
            await server.lost.wait()

    run(scenario())


def test_a_file_that_is_deleted_meanwhile_is_sent_to_its_end(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            request = (100, 0, FILE_BYTES)
            await client.ask(request)
            expected = server.expected(request)
            assert await client.read(1_000) == expected[:1_000]
            before = len(os.listdir("/proc/self/fd"))
            server.readers.forget("segment")
            server.path.unlink()
            assert await client.read(len(expected) - 1_000) == expected[1_000:]
            await until(lambda: len(os.listdir("/proc/self/fd")) < before)

    run(scenario())


def test_a_file_that_is_cut_meanwhile_ends_the_connection(run: Run, tmp_path: Path) -> None:
    """The frame says how long it is: nothing else can follow."""

    async def scenario() -> None:
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            request = (100, 0, FILE_BYTES)
            await client.ask(request)
            expected = server.expected(request)
            assert await client.read(1_000) == expected[:1_000]
            os.truncate(server.path, 1 << 20)
            with contextlib.suppress(ConnectionResetError):
                rest = await client.read(len(expected))
                assert len(rest) < len(expected) - 1_000
            await server.lost.wait()
            assert server.pins == 0

    run(scenario())


def test_what_has_left_the_page_cache_is_read_in_a_thread(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = False

    def cached_length(directory: LogDirectory, fd: int, position: int, length: int) -> int:
        nonlocal cold
        cold = not cold
        return 0 if cold else length

    monkeypatch.setattr(LogDirectory, "cached_length", cached_length)

    async def scenario() -> None:
        async with served(tmp_path) as (server, client):
            requests = mixed(20)
            await client.ask(*requests)
            for request in requests:
                expected = server.expected(request)
                assert await client.read(len(expected)) == expected
            assert server.read_in_thread
            assert server.pins == 0

    run(scenario())


def test_a_client_that_goes_away_during_a_cold_read_leaves_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDirectory, "cached_length", lambda *_: 0)

    async def scenario() -> None:
        disk_responds = asyncio.Event()
        async with served(tmp_path) as (server, client):
            server.disk_responds = disk_responds
            await client.ask((100, 0, FILE_BYTES))
            await client.read(10)
            client.reset()
            disk_responds.set()
            await server.lost.wait()
            await until(lambda: server.pins == 0)

    run(scenario())


def test_a_cold_read_that_fails_after_its_client_has_gone_is_nobodys_trouble(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDirectory, "cached_length", lambda *_: 0)

    async def scenario() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with served(tmp_path) as (server, client):
            server.disk_responds = asyncio.Event()
            await client.ask((100, 0, FILE_BYTES))
            await until(lambda: server.read_in_thread == 1)
            server.connections[0].transport.abort()
            await server.lost.wait()
            os.truncate(server.path, 0)
            server.disk_responds.set()
            await until(lambda: server.pins == 0)
        gc.collect()
        assert not reported

    run(scenario())


def test_a_connection_that_was_lost_is_held_by_nobody(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        before = alive(Connection)
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            await client.ask((100, 0, FILE_BYTES))
            await client.read(10_000)
            assert alive(Connection) == before + 1
            client.reset()
            await server.lost.wait()
            server.connections.clear()
            await until(lambda: alive(Connection) == before)

    with without_collector():
        run(scenario())


def test_a_connection_is_lost_once_when_it_closes_after_its_last_response(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with served(tmp_path, send_buffer=20_000) as (server, client):
            request = (100, 0, FILE_BYTES)
            await client.ask(request)
            await client.read(1_000)
            server.connections[0].close()
            await client.read(FILE_BYTES)
            await server.lost.wait()
        assert not reported

    run(scenario())
