"""Every request passes the same gates in the same order, whichever path handles it, and is measured once."""

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

import pytest

from kaspar.base.metrics import Counter
from kaspar.network.api import Handler, LaterResponse, Purgatory, RequestContext, ServedApi
from kaspar.network.connection import Buffers, Connection, RequestHandler
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.gates import (
    ANONYMOUS,
    Authenticated,
    ConnectionIdentity,
    Gates,
    NoAuthorizer,
    NoQuota,
    Principal,
    Rejected,
)
from kaspar.network.large_requests import LargeRequests
from kaspar.network.pipeline import Pipeline
from kaspar.network.recognition import HandledRequest, KnownRequest
from kaspar.network.request_metrics import FETCH_CONSUMER, RequestMetrics, RequestMetricsByApi
from kaspar.protocol import codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import write_request_header
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kaspar.protocol.messages.fetch import FetchRequest
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kaspar.protocol.produce import OneBatch
from kaspar.protocol.schema import Message
from tests.unit.broker.running import run, until
from tests.unit.broker.wire import RecordingTransport, frame, receive

ALICE: Final = Principal("User", "alice")
CLIENT: Final = "me"


class Listener:
    name = "PLAINTEXT"
    max_request_bytes = 10_000_000
    overloaded = False
    turn_s = math.inf

    def __init__(self, requests: RequestHandler) -> None:
        self.requests = requests
        self.shared_buffer = bytearray(256 * 1024)
        self.shared_view = memoryview(self.shared_buffer)
        self.malformed_requests = Counter()

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...

    async def run_blocking(self, work: Callable[[int], bytes], size: int) -> bytes:
        return work(size)

    def stalled(self, seconds: float) -> None: ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        raise problem


class Frames:
    """Handles Produce or Fetch, and notes how."""

    def __init__(self, name: str, steps: list[str], metrics: RequestMetrics) -> None:
        self.metrics = metrics
        self.exchange: Exchange | None = None
        self._name = name
        self._steps = steps

    def handle(self, exchange: Exchange, frame: memoryview) -> Outcome:
        self.exchange = exchange
        self._steps.append(self._name)
        return (b"response",)

    def handle_one(self, buffer: bytearray, request: OneBatch) -> Buffers | None:
        self._steps.append("one batch")
        return (b"response",)

    def purgatory(self) -> Purgatory:
        return Purgatory(self._name, 0, 0)

    def release_waiting(self) -> None: ...


class Repeated:
    """The second of two heartbeats is recognized, and a third."""

    version = 4
    client_id = CLIENT

    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def matches(self, buffer: bytes | bytearray, start: int, end: int) -> bool:
        return True

    def handle(self, buffer: bytearray, start: int, end: int) -> Buffers | None:
        self._steps.append("recognized")
        return (b"response",)

    def learn(self, known: KnownRequest | None, handled: HandledRequest) -> KnownRequest | None:
        return self


class Gate:
    """All three of them: they note that they were asked, and with what."""

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps
        self.unrestricted = True
        self.throttle_ms = 0
        self.rejects: str | None = None
        self.counted: list[tuple[Principal, str | None, int, int]] = []

    def authenticate(self, connection: Authenticated, api_key: int) -> Principal:
        self._pass("identity")
        return ALICE

    checks_topics = False

    def check(self, connection: Authenticated, principal: Principal, api_key: int) -> bool:
        assert principal is ALICE
        self._pass("permission")
        return self.unrestricted

    def may_write(self, connection: Authenticated, topic: object) -> bool:
        return True

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        self._pass("quota")
        self.counted.append((principal, client_id, api_key, request_bytes))
        return self.throttle_ms

    def _pass(self, name: str) -> None:
        self.steps.append(name)
        if self.rejects == name:
            raise Rejected(f"by {name}")


class Bench:
    def __init__(self, gates: Callable[[Gate], Gates] = lambda gate: Gates(gate, gate, gate)) -> None:
        self.steps: list[str] = []
        self.gate = Gate(self.steps)
        self.contexts: list[RequestContext] = []
        self.metrics = RequestMetricsByApi()
        self.produce = Frames("produce", self.steps, self.metrics.of("Produce"))
        self.fetch = Frames("fetch", self.steps, self.metrics.of(FETCH_CONSUMER))
        keys = (
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.METADATA,
            ApiKey.HEARTBEAT,
            ApiKey.API_VERSIONS,
            ApiKey.DESCRIBE_CLUSTER,
        )
        self.large = LargeRequests(asyncio.to_thread)
        self.later: list[LaterResponse] = []
        self.pipeline = Pipeline(
            {key: ServedApi(key, 0, 13) for key in keys if key is not ApiKey.API_VERSIONS}
            | {ApiKey.API_VERSIONS: ServedApi(ApiKey.API_VERSIONS, 0, 4)},
            gates(self.gate),
            produce=self.produce,
            fetch=self.fetch,
            handler_of=self._handler_of,
            recognizer_of=lambda key: Repeated(self.steps) if key is ApiKey.HEARTBEAT else None,
            unsupported_version=lambda: ApiVersionsResponse(error_code=35, api_keys=()),
            metrics=self.metrics,
            large_requests=self.large,
        )
        self.listener = Listener(self.pipeline)
        self.transport = RecordingTransport()
        self.connection = Connection(self.listener, "127.0.0.1:1")
        self.connection.connection_made(self.transport)

    def _handler_of(self, key: ApiKey) -> Handler:
        def handle(context: RequestContext, request: Any) -> Any:
            self.steps.append("message")
            self.contexts.append(context)
            match request:
                case MetadataRequest():
                    return MetadataResponse(brokers=(), topics=())
                case HeartbeatRequest():
                    return HeartbeatResponse()
                case DescribeClusterRequest():
                    return self._later()
            raise AssertionError(request)

        return handle

    async def _later(self) -> Message:
        await asyncio.sleep(0)
        return DescribeClusterResponse(cluster_id="c", brokers=())

    def send(self, message: Message, version: int) -> int:
        request = write_request_header(message.SCHEMA.api_key, version, 7, CLIENT) + codec.write(message, version)
        receive(self.connection, frame(bytes(request)))
        return len(request)

    def count_requests(self) -> dict[str, int]:
        return {reading.name: sum(reading.versions.values()) for reading in self.metrics.read()}


def one_batch() -> ProduceRequest:
    data = (PartitionProduceData(index=0, records=b"batch"),)
    return ProduceRequest(acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=data),))


def two_batches() -> ProduceRequest:
    data = tuple(PartitionProduceData(index=index, records=b"batch") for index in range(2))
    return ProduceRequest(acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=data),))


def metadata(topic_count: int) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=f"t{number}") for number in range(topic_count)))


FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(), forgotten_topics_data=())
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
CLUSTER = DescribeClusterRequest(include_cluster_authorized_operations=False)

PATHS: Final[dict[str, tuple[Message, int, str, str]]] = {
    "one batch": (one_batch(), 9, "one batch", "produce"),
    "several batches": (two_batches(), 9, "produce", "produce"),
    "fetch": (FETCH, 12, "fetch", "fetch"),
    "message": (metadata(1), 9, "message", "message"),
    "large message": (metadata(600), 9, "message", "message"),
    "later response": (CLUSTER, 0, "message", "message"),
    "recognized": (HEARTBEAT, 4, "recognized", "message"),
}
"""A request, its version, and where it is handled: with no restriction, and with one."""

every_path = pytest.mark.parametrize("path", PATHS)
GATES: Final = ["identity", "permission", "quota"]


async def started(path: str, bench: Bench | None = None) -> Bench:
    """With a client that has sent the request before, where that makes a difference."""
    bench = bench or Bench()
    if path == "recognized":
        bench.send(HEARTBEAT, 4)
        assert bench.connection.known
    bench.steps.clear()
    bench.gate.counted.clear()
    bench.transport.sent.clear()
    return bench


@every_path
def test_a_request_passes_every_gate_in_order_before_it_is_handled(path: str) -> None:
    async def scenario() -> None:
        bench = await started(path)
        message, version, handled, _ = PATHS[path]
        size = bench.send(message, version)
        await until(lambda: bool(bench.transport.sent))
        assert bench.steps[:4] == [*GATES, handled]
        assert set(bench.steps[4:]) <= {handled}, "the pieces of a large request pass the gates together"
        assert bench.gate.counted == [(ALICE, CLIENT, message.SCHEMA.api_key, size)]
        assert all(context.principal is ALICE for context in bench.contexts if path != "recognized")

    run(scenario())


@every_path
@pytest.mark.parametrize("gate", GATES[:2])
def test_a_rejected_request_closes_the_connection_and_is_not_handled(path: str, gate: str) -> None:
    async def scenario() -> None:
        bench = await started(path)
        bench.gate.rejects = gate
        message, version, _, _ = PATHS[path]
        bench.send(message, version)
        assert bench.steps == GATES[: GATES.index(gate) + 1]
        assert bench.transport.is_closing()
        assert not bench.transport.sent
        assert bench.listener.malformed_requests.value == 0

    run(scenario())


@every_path
def test_short_forms_are_not_used_where_resources_must_be_checked(path: str) -> None:
    async def scenario() -> None:
        bench = await started(path)
        bench.gate.unrestricted = False
        message, version, _, handled = PATHS[path]
        bench.send(message, version)
        await until(lambda: bool(bench.transport.sent))
        assert bench.steps[:4] == [*GATES, handled]

    run(scenario())


@every_path
def test_short_forms_are_not_used_for_a_client_over_its_quota_and_it_is_throttled(path: str) -> None:
    async def scenario() -> None:
        bench = await started(path)
        bench.gate.throttle_ms = 60_000
        message, version, _, handled = PATHS[path]
        bench.send(message, version)
        await until(lambda: bool(bench.transport.sent))
        assert bench.steps[:4] == [*GATES, handled]
        assert not bench.transport.is_reading(), "KIP-219"
        bench.connection.connection_lost(None)

    run(scenario())


@pytest.mark.parametrize("path", ["message", "large message", "later response", "recognized"])
def test_the_throttle_time_is_in_the_response_of_a_message(path: str) -> None:
    async def scenario() -> None:
        bench = await started(path)
        bench.gate.throttle_ms = 60_000
        message, version, _, _ = PATHS[path]
        bench.send(message, version)
        await until(lambda: bool(bench.transport.sent))
        assert (60_000).to_bytes(4, "big") in bench.transport.sent
        bench.connection.connection_lost(None)

    run(scenario())


def test_a_response_without_the_field_has_no_throttle_time() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.gate.throttle_ms = 60_000
        bench.send(metadata(1), 0)
        assert bench.transport.sent
        assert (60_000).to_bytes(4, "big") not in bench.transport.sent
        bench.connection.connection_lost(None)

    run(scenario())


@pytest.mark.parametrize("frames", ["produce", "fetch"])
def test_handlers_of_frames_are_given_the_throttle_time_and_the_principal(frames: str) -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.gate.throttle_ms = 60_000
        bench.send(one_batch() if frames == "produce" else FETCH, 9)
        exchange = (bench.produce if frames == "produce" else bench.fetch).exchange
        assert exchange is not None
        assert (exchange.throttle_time_ms, exchange.principal) == (60_000, ALICE)
        bench.connection.connection_lost(None)

    run(scenario())


def test_a_throttled_client_is_read_from_again_when_its_time_is_over() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.gate.throttle_ms = 20
        bench.send(metadata(1), 9)
        assert not bench.transport.is_reading()
        bench.connection.try_resume()
        assert not bench.transport.is_reading(), "nothing else resumes it"
        await until(bench.transport.is_reading)

    run(scenario())


def test_requests_behind_a_throttled_one_wait() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.gate.throttle_ms = 20
        request = write_request_header(ApiKey.METADATA, 9, 7, CLIENT) + codec.write(metadata(1), 9)
        receive(bench.connection, frame(bytes(request)) * 2)
        assert bench.steps.count("message") == 1
        bench.gate.throttle_ms = 0
        await until(lambda: bench.steps.count("message") == 2)

    run(scenario())


@every_path
def test_a_request_is_measured_once(path: str) -> None:
    async def scenario() -> None:
        bench = await started(path)
        before = bench.count_requests()
        message, version, _, _ = PATHS[path]
        bench.send(message, version)
        await until(lambda: bool(bench.transport.sent))
        after = bench.count_requests()
        assert sum(after.values()) - sum(before.values()) == (2 if path == "fetch" else 1), (
            "Fetch counts for its sum too"
        )

    run(scenario())


def test_api_versions_of_a_newer_client_passes_the_gates_and_gets_version_0() -> None:
    async def scenario() -> None:
        bench = Bench()
        request = ApiVersionsRequest(client_software_name="new", client_software_version="1")
        header = write_request_header(ApiKey.API_VERSIONS, 4, 7, CLIENT)
        header[2:4] = (99).to_bytes(2, "big")
        receive(bench.connection, frame(bytes(header) + codec.write(request, 4)))
        assert bench.steps == GATES
        response, _ = codec.read(ApiVersionsResponse, 0, bench.transport.sent, 8)
        assert response.error_code == 35

    run(scenario())


@pytest.mark.parametrize(("api_key", "version"), [(77, 0), (3, 14)])
def test_what_is_not_served_closes_the_connection_before_any_gate(api_key: int, version: int) -> None:
    async def scenario() -> None:
        bench = Bench()
        receive(bench.connection, frame(b"".join(number.to_bytes(2, "big") for number in (api_key, version, 0, 7, 0))))
        assert bench.transport.is_closing()
        assert bench.steps == []
        assert bench.listener.malformed_requests.value == 1

    run(scenario())


@every_path
def test_without_an_authenticator_an_authorizer_and_a_quota_everything_is_allowed(path: str) -> None:
    async def scenario() -> None:
        bench = await started(path, Bench(lambda _: Gates(ConnectionIdentity(), NoAuthorizer(), NoQuota())))
        message, version, handled, _ = PATHS[path]
        bench.send(message, version)
        await until(lambda: bool(bench.transport.sent))
        assert bench.steps[0] == handled
        assert bench.connection.principal is ANONYMOUS
        assert str(ANONYMOUS) == "User:ANONYMOUS"
        assert bench.transport.is_reading()

    run(scenario())
