"""The asyncio connection against scripted peers, over real sockets: order, bounds, faults and cancellation."""

import asyncio
import gc
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.core import Unencodable, UnsupportedByPeer
from kaspar.protocol.api import ApiKey
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import fetch, metadata, produce
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.schema import Message
from tests.unit.client.loops import Run
from tests.unit.client.scripted import (
    HANG_UP,
    Last,
    Reply,
    ScriptedBroker,
    api_versions,
    responding_with,
    response_frame,
)

REQUEST = metadata.MetadataRequest(topics=())


def response(number: int) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(brokers=(), topics=(), controller_id=number)


def number_of(message: Message) -> int:
    assert isinstance(message, metadata.MetadataResponse)
    return message.controller_id


def numbered(header: RequestHeader, request: Message) -> Message:
    """Serves ApiVersions, and responds to Metadata with the correlation id: 1, 2, 3 ..."""
    return api_versions() if isinstance(request, ApiVersionsRequest) else response(header.correlation_id)


def produce_request(size: int = 0, *, timeout_ms: int = 1000) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=0, records=bytes(size))
    topic = produce.TopicProduceData(name="t", partition_data=(data,))
    return produce.ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=(topic,))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in another thread
        await asyncio.sleep(0.001)


async def failures(*requests: asyncio.Task[Message]) -> list[BaseException]:
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert all(isinstance(outcome, BaseException) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]


# --- requests ---------------------------------------------------------------------------------------------------------


def test_request_has_the_newest_version_of_both_sides(run: Run) -> None:
    expected = metadata.MetadataResponse(brokers=(), topics=(), cluster_id="here")

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            assert await connection.request(REQUEST) == expected
            assert connection.core.version_of(ApiKey.METADATA) == 13

    with responding_with(expected) as broker:
        run(test())


def test_requests_of_many_tasks_are_sent_in_order_and_within_the_bound(run: Run) -> None:
    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port, max_in_flight=5) as connection:

            async def ask() -> int:
                found = number_of(await connection.request(REQUEST))
                assert len(connection.core.open_requests) <= 5
                return found

            assert await asyncio.gather(*[ask() for _ in range(200)]) == list(range(1, 201))

    with ScriptedBroker(numbered) as broker:
        run(test())


def test_many_requests_at_once_have_their_responses_in_order(run: Run) -> None:
    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port, max_in_flight=7) as connection:
            responses = await connection.request_all([REQUEST] * 100)
            assert [number_of(each) for each in responses] == list(range(1, 101))

    with ScriptedBroker(numbered) as broker:
        run(test())


def test_response_may_arrive_byte_by_byte(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        for byte in response_frame(RequestHeader(ApiKey.METADATA, 4, 0, None, 0), response(5)):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, await AsyncConnection.connect("127.0.0.1", port, negotiate=False) as connection:
            assert number_of(await connection.request(REQUEST, 4)) == 5

    run(test())


def test_records_are_views_of_the_received_frame(run: Run) -> None:
    data = fetch.PartitionData(partition_index=0, high_watermark=1, aborted_transactions=None, records=b"batch" * 1000)
    fetched = fetch.FetchResponse(responses=(fetch.FetchableTopicResponse(topic="t", partitions=(data,)),))
    request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=())

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port, records_in_place=True) as connection:
            views: list[object] = []
            for _ in range(2):
                message = await connection.request(request)
                assert isinstance(message, fetch.FetchResponse)
                views.append(message.responses[0].partitions[0].records)
        for view in views:  # also the first one, after the next frame was received and the connection closed
            assert isinstance(view, memoryview)
            assert isinstance(view.obj, bytearray)
            assert view == b"batch" * 1000

    with responding_with(fetched) as broker:
        run(test())


def test_request_without_a_response_does_not_wait(run: Run) -> None:
    def handler(header: RequestHeader, request: Message) -> Reply:
        return None if isinstance(request, produce.ProduceRequest) else numbered(header, request)

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            await connection.send_only(produce_request())
            assert number_of(await connection.request(REQUEST)) == 2
        assert len(broker.requests) == 3

    with ScriptedBroker(handler) as broker:
        run(test())


def test_message_that_cannot_be_sent_fails_only_its_caller(run: Run) -> None:
    def serves_metadata(header: RequestHeader, request: Message) -> Reply:
        served = (ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=13),)
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(api_keys=served)
        return response(header.correlation_id)

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            before = asyncio.create_task(connection.request(REQUEST))
            with pytest.raises(UnsupportedByPeer, match="the peer does not serve it"):
                await connection.request(produce_request())
            with pytest.raises(Unencodable, match="Produce cannot be sent"):
                await connection.request(produce_request(timeout_ms=1 << 40), 9)
            assert number_of(await before) == 1
            assert number_of(await connection.request(REQUEST)) == 2

    with ScriptedBroker(serves_metadata) as broker:
        run(test())


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_peer_that_does_not_read_holds_further_requests_back(run: Run) -> None:
    may_read = threading.Event()

    def handler(header: RequestHeader, request: Message) -> Reply:
        if isinstance(request, produce.ProduceRequest):
            may_read.wait()
            return produce.ProduceResponse(responses=())
        return numbered(header, request)

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            message = produce_request(1 << 20)
            requests = [asyncio.create_task(connection.request(message, 9)) for _ in range(40)]
            await until(lambda: connection._is_paused)
            await asyncio.sleep(0.05)
            assert 0 < len(connection.core.open_requests) < 20
            may_read.set()
            assert len(await asyncio.gather(*requests)) == 40

    with ScriptedBroker(handler) as broker:
        run(test())


def test_request_that_cannot_be_sent_in_time_fails_alone(run: Run) -> None:
    may_respond = threading.Event()

    def handler(header: RequestHeader, request: Message) -> Reply:
        if isinstance(request, metadata.MetadataRequest):
            may_respond.wait()
        return numbered(header, request)

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port, max_in_flight=1) as connection:
            first = asyncio.create_task(connection.request(REQUEST))
            await until(lambda: len(connection.core.open_requests) == 1)
            with pytest.raises(TimeoutError, match=r"not sent to 127.0.0.1:.* in time: 1 earlier requests"):
                await connection.request(REQUEST, timeout_s=0.05)
            may_respond.set()
            assert number_of(await first) == 1
            assert number_of(await connection.request(REQUEST)) == 2

    with ScriptedBroker(handler) as broker:
        run(test())


# --- faults of the peer -----------------------------------------------------------------------------------------------


def test_silent_peer_is_a_timeout_that_ends_the_connection(run: Run) -> None:
    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            others = [asyncio.create_task(connection.request(REQUEST)) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError, match=r"no response from 127.0.0.1:.* within 0.1 s"):
                await connection.request(REQUEST, timeout_s=0.1)
            for failure in await failures(*others):
                assert isinstance(failure, ConnectionAbortedError)
                assert "the connection was closed: no response from 127.0.0.1:" in str(failure)
            assert connection.is_closed
            with pytest.raises(ConnectionAbortedError, match=r"no response"):
                await connection.request(REQUEST)

    with responding_with(None) as broker:
        run(test())


@pytest.mark.parametrize(
    ("reply", "kind", "reason"),
    [
        (HANG_UP, ConnectionResetError, "was closed by the peer|was lost"),
        (Last(b"\0\0"), ConnectionResetError, "was closed by the peer|was lost"),
        (Last(b"\0\0\1\0\0\0\0\1half"), ConnectionResetError, "was closed by the peer|was lost"),
        (b"\0\0\0\5garbage", MalformedBytes, "bytes that are not a response"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", MalformedBytes, "a response frame of 1213486160 bytes; the limit is"),
        (struct.pack(">i", -1), MalformedBytes, "a response frame of -1 bytes; the limit is"),
        (struct.pack(">i", 1001), MalformedBytes, "a response frame of 1001 bytes; the limit is 1000"),
        (struct.pack(">iiB", 5, 77, 0), MalformedBytes, "a response with correlation id 77 instead of 1"),
    ],
    ids=["closes", "closes in a size", "closes in a frame", "garbage", "http", "negative", "oversized", "unknown id"],
)
def test_fault_of_the_peer_fails_every_caller_with_its_reason(
    run: Run, reply: Reply, kind: type[Exception], reason: str
) -> None:
    async def test() -> None:
        connection = await AsyncConnection.connect("127.0.0.1", broker.port, max_frame_bytes=1000, max_in_flight=2)
        found = await failures(*[asyncio.create_task(connection.request(REQUEST)) for _ in range(5)])
        assert [type(failure) for failure in found] == [kind] * 5
        assert len({str(failure) for failure in found}) == 1
        assert len(set(map(id, found))) == 5
        with pytest.raises(kind, match=reason):
            await connection.request(REQUEST)
        await connection.close()

    served = ApiVersionsResponse(api_keys=(ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=13),))
    with ScriptedBroker(lambda header, request: served if isinstance(request, ApiVersionsRequest) else reply) as broker:
        run(test())


def test_response_without_a_request_ends_the_connection(run: Run) -> None:
    def twice(header: RequestHeader, request: Message) -> Reply:
        if isinstance(request, ApiVersionsRequest):
            return api_versions()
        return response_frame(header, response(1)) * 2

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            assert number_of(await connection.request(REQUEST)) == 1
            await until(lambda: connection.is_closed)
            with pytest.raises(MalformedBytes, match="a response without a request"):
                await connection.request(REQUEST)

    with ScriptedBroker(twice) as broker:
        run(test())


def test_peer_that_refuses_every_version_of_api_versions_is_given_up(run: Run) -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),))

    async def test() -> None:
        with pytest.raises(UnsupportedByPeer):
            await AsyncConnection.connect("127.0.0.1", broker.port)
        assert len(broker.requests) == 2

    with ScriptedBroker(lambda header, request: response_frame(header, refusal, 0)) as broker:
        run(test())


def test_peer_that_is_silent_from_the_start_is_a_timeout(run: Run) -> None:
    async def test() -> None:
        with pytest.raises(TimeoutError, match=r"no response from 127.0.0.1:.* within 0.1 s"):
            await AsyncConnection.connect("127.0.0.1", broker.port, timeout_s=0.1)

    with ScriptedBroker(lambda header, request: None) as broker:
        run(test())


# --- connecting -------------------------------------------------------------------------------------------------------


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port where connections are neither accepted nor refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port: int = listener.getsockname()[1]
        waiting = []
        for _ in range(8):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            waiting.append(client)
        yield port
        for client in waiting:
            client.close()


def test_nothing_listens_there(run: Run) -> None:
    async def test() -> None:
        with pytest.raises(ConnectionRefusedError):
            await AsyncConnection.connect("127.0.0.1", port)
        with pytest.raises(OSError):
            await AsyncConnection.connect("no-such-host.invalid", 9092)

    with responding_with(None) as broker:
        port = broker.port
    run(test())


def test_connection_that_is_not_made_in_time(run: Run) -> None:
    async def test() -> None:
        with pytest.raises(TimeoutError, match=r"no connection to 127.0.0.1:.* within 0.1 s"):
            await AsyncConnection.connect("127.0.0.1", port, timeout_s=0.1)

    with full_backlog() as port:
        run(test())


@pytest.mark.parametrize("silent", [True, False], ids=["in the handshake", "in the connect"])
def test_connecting_can_be_cancelled(run: Run, silent: bool) -> None:
    async def test(port: int) -> None:
        task = asyncio.create_task(AsyncConnection.connect("127.0.0.1", port))
        await until(lambda: not silent or bool(broker.requests))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        gc.collect()  # an open transport would be a ResourceWarning, which is an error

    with ScriptedBroker(lambda header, request: None) as broker, full_backlog() as full:
        run(test(broker.port if silent else full))


# --- cancelling and closing -------------------------------------------------------------------------------------------


def test_cancelled_caller_affects_no_other(run: Run) -> None:
    may_respond = threading.Event()

    def handler(header: RequestHeader, request: Message) -> Reply:
        if isinstance(request, metadata.MetadataRequest):
            may_respond.wait()
        return numbered(header, request)

    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port, max_in_flight=3) as connection:
            tasks = [asyncio.create_task(connection.request(REQUEST)) for _ in range(6)]
            await until(lambda: len(connection.core.open_requests) == 3)
            sent, waiting = tasks[1], tasks[4]
            for task in (sent, waiting):
                task.cancel()
            await asyncio.wait([sent, waiting])
            assert sent.cancelled()
            assert waiting.cancelled()
            may_respond.set()
            rest = [task for task in tasks if not task.cancelled()]
            assert [number_of(await task) for task in rest] == [1, 3, 4, 5]
            assert number_of(await connection.request(REQUEST)) == 6
        assert len(broker.requests) == 7, "the one that was cancelled before it was sent is not sent"

    with ScriptedBroker(handler) as broker:
        run(test())


def test_response_that_never_arrives_ends_the_connection_also_if_its_caller_was_cancelled(run: Run) -> None:
    async def test() -> None:
        async with await AsyncConnection.connect("127.0.0.1", broker.port) as connection:
            task = asyncio.create_task(connection.request(REQUEST, timeout_s=0.1))
            await asyncio.sleep(0)
            task.cancel()
            await until(lambda: connection.is_closed)
            with pytest.raises(ConnectionAbortedError, match=r"no response from .* within 0.1 s"):
                await connection.request(REQUEST)

    with responding_with(None) as broker:
        run(test())


def test_closing_fails_every_caller_with_one_sentence(run: Run) -> None:
    async def test() -> None:
        connection = await AsyncConnection.connect("127.0.0.1", broker.port, max_in_flight=2)
        tasks = [asyncio.create_task(connection.request(REQUEST)) for _ in range(4)]
        tasks.append(asyncio.create_task(all_of(connection)))
        await until(lambda: len(connection.core.open_requests) == 2)
        await connection.close()
        for failure in await failures(*tasks):
            assert isinstance(failure, ConnectionAbortedError)
            assert str(failure) == f"the connection to 127.0.0.1:{broker.port} was closed by this side"
        with pytest.raises(ConnectionAbortedError):
            await connection.request(REQUEST)
        await connection.close()
        assert asyncio.all_tasks() == {asyncio.current_task()} | waits_for_this_test()

    async def all_of(connection: AsyncConnection) -> Message:
        return (await connection.request_all([REQUEST] * 3))[0]

    def waits_for_this_test() -> set[asyncio.Task[object]]:
        """The wait_for around the test is a task of its own where wait_for makes one."""
        return {task for task in asyncio.all_tasks() if "wait_for" in repr(task)}

    with responding_with(None) as broker:
        run(test())
