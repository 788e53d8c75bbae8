"""Metrics that clients push (KIP-714): they are on the page while their client is there, and nobody can overdo it."""

import gzip
import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import uuid_to_text
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kaspar.protocol.messages.push_telemetry import PushTelemetryResponse
from tests.peers.observed import MIB, ObservedBroker, wait_until
from tests.peers.otlp import gauge, histogram, metrics_data, padding, total
from tests.peers.raw_client import RawClient, request_frame
from tests.peers.telemetry_client import Pusher, subscribe

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
SETTINGS = {"telemetry.max.bytes": "100000", "kaspar.telemetry.max.series": "500"}
QUICK_MS = 100


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path_factory.mktemp("telemetry"), overrides=SETTINGS) as broker:
        yield broker


@pytest.fixture
def broker(shared: ObservedBroker) -> Iterator[ObservedBroker]:
    yield shared
    assert not shared.unexpected_errors()
    wait_until(lambda: not pushed(shared), "what clients pushed goes with them")


def pushed(broker: ObservedBroker) -> dict[str, float]:
    """Without the labels of the client."""
    return {
        name.replace(name[name.index("client_id=") : name.index('ANONYMOUS"') + len('ANONYMOUS"')], ""): value
        for name, value in broker.metrics().items()
        if name.startswith("kafka_client_")
    }


def pusher(client: RawClient, *, interval_ms: int = QUICK_MS, metrics: str = "*") -> Pusher:
    subscribe(client, "all", metrics=metrics, interval_ms=interval_ms)
    asking = Pusher(client)
    assert asking.ask() == ErrorCode.NONE
    return asking


def push_in_time(pushing: Pusher, metrics: bytes, *, compression: int = 0) -> None:
    """As soon as it is accepted."""
    wait_until(lambda: pushing.push(metrics, compression=compression) == ErrorCode.NONE, "it is time for another push")


def test_what_clients_push_is_on_the_page(broker: ObservedBroker) -> None:
    with broker.client() as client:
        pushing = pusher(client)
        metrics = metrics_data(
            gauge("org.apache.kafka.producer.a", 1.5, {"topic": "t"}),
            total("org.apache.kafka.producer.b", 2, delta=True),
            histogram("org.apache.kafka.producer.c", [1.0, 5.0], [1, 2, 3], 40.0),
        )
        push_in_time(pushing, metrics)
        push_in_time(pushing, zstandard.ZstdCompressor().compress(metrics), compression=ZSTD)
        assert pushed(broker) == {
            'kafka_client_producer_a{,topic="t"}': 1.5,
            "kafka_client_producer_b_total{}": 4,
            'kafka_client_producer_c_bucket{,le="1.0"}': 2,
            'kafka_client_producer_c_bucket{,le="5.0"}': 6,
            'kafka_client_producer_c_bucket{,le="+Inf"}': 12,
            "kafka_client_producer_c_sum{}": 80,
            "kafka_client_producer_c_count{}": 12,
        }
        page = broker.get("metrics")[1]
        assert "# TYPE kafka_client_producer_b_total counter" in page
        assert "# TYPE kafka_client_producer_c histogram" in page
        assert f'client_instance_id="{uuid_to_text(pushing.id)}"' in page
        assert broker.metrics()["kaspar_client_telemetry_series"] == 3


def test_only_what_a_client_is_subscribed_for_is_kept(broker: ObservedBroker) -> None:
    with broker.client() as client:
        pushing = pusher(client, metrics="org.apache.kafka.producer.")
        push_in_time(pushing, metrics_data(gauge("org.apache.kafka.producer.a", 1.0), gauge("my.own", 2.0)))
        assert pushed(broker) == {"kafka_client_producer_a{}": 1.0}


def test_a_client_with_a_changed_subscription_is_told(broker: ObservedBroker) -> None:
    with broker.client() as client:
        pushing = pusher(client)
        push_in_time(pushing, metrics_data(gauge("a", 1.0)))
        subscribe(client, "all", metrics="b", interval_ms=QUICK_MS)
        assert pushing.push(metrics_data(gauge("a", 1.0))) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        assert pushed(broker) == {}
        assert pushing.ask() == ErrorCode.NONE
        assert pushing.subscription is not None
        assert pushing.subscription.requested_metrics == ("b",)


def test_a_client_goes_on_after_a_restart_of_its_broker(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            pushing = pusher(client)
            push_in_time(pushing, metrics_data(total("a", 1, delta=True)))
        broker.kill()
        broker.start()
        with broker.client() as client:
            again = Pusher(client, pushing.id)
            again.subscription = pushing.subscription
            assert again.push(metrics_data(total("a", 1, delta=True))) == ErrorCode.NONE
            assert pushed(broker) == {"kafka_client_a_total{}": 1}


# -- those who overdo it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_random_bytes(broker: ObservedBroker, compression: int) -> None:
    rng = random.Random(compression)
    with broker.client() as client:
        asker = pusher(client, interval_ms=60_000)
        for _ in range(200):
            pushing = Pusher(client, uuid.UUID(int=rng.getrandbits(128)))
            assert pushing.ask() == ErrorCode.NONE
            code = pushing.push(rng.randbytes(rng.randrange(1, 300)), compression=compression)
            assert code in (ErrorCode.INVALID_RECORD, ErrorCode.NONE, ErrorCode.TELEMETRY_TOO_LARGE)
        assert asker.push(metrics_data(gauge("a", 1.0))) == ErrorCode.NONE
        assert pushed(broker)["kafka_client_a{}"] == 1.0


def test_a_bomb_is_not_inflated(broker: ObservedBroker) -> None:
    bombs = {
        ZSTD: zstandard.ZstdCompressor().compress(padding(64 * MIB)),
        GZIP: gzip.compress(padding(64 * MIB)),
    }
    with broker.client() as client:
        pusher(client, interval_ms=60_000)
        before = broker.memory_bytes()
        broker.forget_peak_memory()
        for compression, bomb in bombs.items():
            assert len(bomb) < 100_000
            pushing = Pusher(client)
            assert pushing.ask() == ErrorCode.NONE
            assert pushing.push(bomb, compression=compression) == ErrorCode.TELEMETRY_TOO_LARGE
        assert broker.peak_memory_bytes() < before + 20 * MIB


def test_more_series_than_there_is_room_for(broker: ObservedBroker) -> None:
    with broker.client() as client, broker.client() as other:
        pushing, late = pusher(client), pusher(other)
        push_in_time(pushing, metrics_data(*(gauge(f"m{number}", 1.0) for number in range(1000))))
        assert len(pushed(broker)) == 500
        push_in_time(late, metrics_data(gauge("late", 1.0)))
        assert "kafka_client_late{}" not in pushed(broker)
        assert broker.log_lines("dropped metrics that a client pushed")
        push_in_time(pushing, metrics_data(gauge("m1", 2.0)))
        push_in_time(late, metrics_data(gauge("late", 1.0)))
        assert pushed(broker) == {"kafka_client_m1{}": 2.0, "kafka_client_late{}": 1.0}


def test_thousands_of_clients_of_one_connection(broker: ObservedBroker) -> None:
    """A client that names itself anew with each request, and at length, is forgotten in the end; others go on."""
    with broker.client() as honest, broker.client() as client:
        pushing = pusher(honest)
        rng = random.Random(1)
        before = broker.memory_bytes()
        for _ in range(40):
            requests = [
                GetTelemetrySubscriptionsRequest(client_instance_id=uuid.UUID(int=rng.getrandbits(128)))
                for _ in range(500)
            ]
            client.send(b"".join(request_frame(each, 0, client_id="c" * 20_000) for each in requests))
            for _ in requests:
                client.receive()
        assert broker.metrics()["kafka_server_client_metrics_instance_count"] == 16_384
        assert broker.memory_bytes() < before + 60 * MIB
        push_in_time(pushing, metrics_data(gauge("a", 1.0)))
        assert pushed(broker) == {"kafka_client_a{}": 1.0}


def test_pushes_by_the_hundred_at_once(broker: ObservedBroker) -> None:
    """Each takes long to read. Some are throttled, and other requests are served in between."""
    slow = metrics_data(*(gauge(f"m{number}", 1.0) for number in range(1000)))
    assert len(slow) < 100_000
    clients = [broker.client() for _ in range(100)]
    with broker.client() as honest:
        subscribe(honest, "all", metrics="none", interval_ms=60_000)
        pushers = [Pusher(client) for client in clients]
        for each in pushers:
            assert each.ask() == ErrorCode.NONE
        for client, each in zip(clients, pushers, strict=True):
            client.send(request_frame(each.request(slow), 0, correlation_id=7))
        assert honest.create_topic(f"t{uuid.uuid4().hex[:6]}") == ErrorCode.NONE
        for client in clients:
            with client:
                response = client.response_to(ApiKey.PUSH_TELEMETRY, 0, 7)
                assert isinstance(response, PushTelemetryResponse)
                assert response.error_code in (ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
