"""Clients come, push, and go: what a broker keeps of them, and for how long."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.services import CurrentSettings
from kaspar.broker.telemetry.receiver import MAX_WAITING
from kaspar.broker.telemetry.stats import ClientMetricsStats
from kaspar.broker.telemetry.telemetry import Telemetry
from kaspar.broker.timers import Timers
from kaspar.config import BrokerSettings
from kaspar.metadata.image import ClusterImage
from kaspar.network.api import RequestContext
from kaspar.network.connected_client import ConnectedClient
from kaspar.network.gates import ANONYMOUS, Principal
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.push_telemetry import PushTelemetryRequest
from tests.peers.otlp import gauge, metrics_data
from tests.unit.broker.running import run

INTERVAL_MS = 1000
METRICS = metrics_data(gauge("a", 1.0))


@dataclass
class Images:
    current: ClusterImage = field(
        default_factory=lambda: ClusterImage(
            "cluster", client_metrics_configs={"s": {"metrics": "*", "interval.ms": str(INTERVAL_MS)}}
        )
    )


class Setup:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock, on_bug=_raise)
        self.stats = ClientMetricsStats()
        self.reading = asyncio.Event()
        self.reading.set()
        settings = CurrentSettings(BrokerSettings.of({"node.id": "1"}))
        self.telemetry = Telemetry(Images(), settings, self.timers, self.stats, self._run)

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        await self.reading.wait()
        return work(*arguments)

    def subscribe(self, connection: ConnectedClient, principal: Principal = ANONYMOUS) -> PushTelemetryRequest:
        """The push that the client may send."""
        client_instance_id, subscribed = self.telemetry.subscribe(context(connection, principal), ZERO_UUID)
        return push_of(client_instance_id, subscribed.id)

    async def push(
        self, connection: ConnectedClient, request: PushTelemetryRequest, principal: Principal = ANONYMOUS
    ) -> ErrorCode:
        try:
            await self.telemetry.push(context(connection, principal), request)
        except Refused as refusal:
            return refusal.code
        return ErrorCode.NONE

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timers.fire()


def _raise(problem: Exception) -> None:
    raise problem


def push_of(client_instance_id: uuid.UUID, subscription_id: int) -> PushTelemetryRequest:
    return PushTelemetryRequest(
        client_instance_id=client_instance_id,
        subscription_id=subscription_id,
        terminating=False,
        compression_type=0,
        metrics=METRICS,
    )


def context(connection: ConnectedClient, principal: Principal = ANONYMOUS) -> RequestContext:
    return RequestContext(ApiKey.PUSH_TELEMETRY, 0, 1, "c", "127.0.0.1:1", "L", principal, "PLAINTEXT", connection)


def test_a_silent_client_is_forgotten() -> None:
    async def scenario() -> None:
        setup = Setup()
        connection = ConnectedClient()
        request = setup.subscribe(connection)
        setup.pass_time(30_000)
        assert await setup.push(connection, request) == ErrorCode.NONE
        setup.pass_time(59_999)
        assert len(setup.telemetry.clients()) == setup.telemetry.instance_count == 1
        setup.pass_time(1)
        assert len(setup.telemetry.clients()) == setup.telemetry.instance_count == 0
        assert len(setup.timers) == 0

    run(scenario())


def test_a_client_that_disconnects_is_forgotten() -> None:
    async def scenario() -> None:
        setup = Setup()
        connection = ConnectedClient()
        await setup.push(connection, setup.subscribe(connection))
        connection.disconnected()
        assert len(setup.telemetry.clients()) == setup.telemetry.instance_count == len(setup.timers) == 0

    run(scenario())


def test_a_client_with_another_connection_by_now_is_not_forgotten() -> None:
    async def scenario() -> None:
        setup = Setup()
        first, second = ConnectedClient(), ConnectedClient()
        await setup.push(second, setup.subscribe(first))
        first.disconnected()
        assert len(setup.telemetry.clients()) == 1
        second.disconnected()
        assert len(setup.telemetry.clients()) == 0

    run(scenario())


def test_a_push_of_a_client_that_is_gone_by_then_leaves_nothing() -> None:
    async def scenario() -> None:
        setup = Setup()
        connection = ConnectedClient()
        request = setup.subscribe(connection)
        setup.reading.clear()
        pushing = asyncio.create_task(setup.push(connection, request))
        await asyncio.sleep(0)
        connection.disconnected()
        setup.reading.set()
        assert await pushing == ErrorCode.NONE
        assert setup.telemetry.clients() == []

    run(scenario())


def test_no_one_pushes_in_the_name_of_another_principal() -> None:
    async def scenario() -> None:
        setup = Setup()
        connection, others = ConnectedClient(), ConnectedClient()
        request = setup.subscribe(connection, Principal("User", "alice"))
        assert await setup.push(others, request, Principal("User", "mallory")) == ErrorCode.INVALID_REQUEST
        others.disconnected()
        assert await setup.push(connection, request, Principal("User", "alice")) == ErrorCode.NONE

    run(scenario())


def test_few_pushes_wait_to_be_read() -> None:
    async def scenario() -> None:
        setup = Setup()
        connections = [ConnectedClient() for _ in range(MAX_WAITING + 5)]
        requests = [setup.subscribe(each) for each in connections]
        setup.reading.clear()
        pushes = [
            asyncio.create_task(setup.push(connection, request))
            for connection, request in zip(connections, requests, strict=True)
        ]
        for _ in range(3):
            await asyncio.sleep(0)
        setup.reading.set()
        codes = [await each for each in pushes]
        assert codes == [ErrorCode.NONE] * MAX_WAITING + [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 5
        assert setup.stats.throttled.value == 5
        assert setup.stats.exports.value == MAX_WAITING

    run(scenario())


@pytest.mark.parametrize("reserved", [0, 1])
def test_reserved_ids_are_refused(reserved: int) -> None:
    async def scenario() -> None:
        setup = Setup()
        assert await setup.push(ConnectedClient(), push_of(uuid.UUID(int=reserved), 1)) == ErrorCode.INVALID_REQUEST
        assert setup.telemetry.instance_count == 0

    run(scenario())
