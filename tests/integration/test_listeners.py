"""Listeners, what they advertise, and how many connections they take."""

import socket
import time
from pathlib import Path

from kaspar.records import Record, build_batch
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import NAMES_TOPICS, RawClient, fetch_request, produce_request, request_frame
from tests.peers.wire import free_port

EXPIRED = 'kaspar_idle_connections_closed_total{listener="PLAINTEXT",networkProcessor="0"}'


def test_each_listener_returns_its_own_advertised_address(tmp_path: Path) -> None:
    inside, outside = free_port(), free_port()
    settings = {
        "listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "advertised.listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://broker.example.org:19092",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    broker = ObservedBroker(tmp_path, overrides=settings)
    broker.port = inside
    with broker:
        advertised = {}
        for port in (inside, outside):
            with RawClient(port) as client:
                (one,) = client.metadata().brokers
                advertised[port] = (one.host, one.port)
                assert client.create_topic(f"by-{port}") == 0
        assert advertised == {inside: ("127.0.0.1", inside), outside: ("broker.example.org", 19092)}
        with RawClient(inside) as client:
            assert client.topics() == {f"by-{inside}", f"by-{outside}"}, "both lead to the same broker"


def test_newcomers_wait_at_max_connections(tmp_path: Path) -> None:
    """As with Kafka they wait in the kernel's queue, and are served when a place is free."""
    with ObservedBroker(tmp_path, overrides={"max.connections": "3"}) as broker:
        clients = [broker.client() for _ in range(3)]
        for client in clients:
            client.topics()
        late = RawClient(broker.port, timeout=0.3)
        try:
            late.topics()
            served = True
        except TimeoutError:
            served = False
        assert not served
        clients[0].close()
        late.socket.settimeout(30)
        assert late.receive(), "the response to what it asked while it waited"
        for client in (late, *clients):
            client.close()


def test_connections_per_ip(tmp_path: Path) -> None:
    settings = {"max.connections.per.ip": "2", "max.connections.per.ip.overrides": "127.0.0.3:1"}
    with ObservedBroker(tmp_path, overrides=settings) as broker:

        def connect(address: str) -> socket.socket:
            return socket.create_connection((broker.host, broker.port), timeout=10, source_address=(address, 0))

        with connect("127.0.0.2") as one, connect("127.0.0.2") as two, connect("127.0.0.2") as three:
            assert three.recv(1) == b"", "the third is closed"
            one.setblocking(False)
            two.setblocking(False)
            with connect("127.0.0.3"), connect("127.0.0.3") as second:
                assert second.recv(1) == b"", "an override is for one address"
        rejected = 'kaspar_connections_rejected_total{listener="PLAINTEXT",networkProcessor="0"}'
        assert broker.metrics()[rejected] == 2
        wait_until(lambda: _is_taken(broker), "places are free again")


def _is_taken(broker: ObservedBroker) -> bool:
    try:
        with RawClient(broker.port, timeout=10) as client:
            client.topics()
    except ConnectionError:
        return False
    return True


def test_idle_connections_are_closed(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path, overrides={"connections.max.idle.ms": "1000"}) as broker:
        with broker.client() as idle, broker.client() as busy:
            idle.topics()
            started = time.monotonic()
            busy.create_topic("orders")
            # A long wait is no idleness: the broker is at work for this client.
            response = busy.fetch("orders", 0, max_wait_ms=2500)
            assert response.error_code == 0
            assert idle.is_closed_by_broker()
            assert time.monotonic() - started >= 1.0
            busy.topics()
        assert broker.metrics()[EXPIRED] == 1


def test_requests_are_processed_while_earlier_ones_wait_and_responses_stay_in_order(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path) as broker, broker.client() as client:
        assert client.create_topic("orders") == 0
        assert client.create_topic("other") == 0
        batch = bytes(build_batch([Record(-1, None, b"wakes nobody")]))
        client.send(
            request_frame(fetch_request("orders", 0, max_wait_ms=60_000), NAMES_TOPICS, correlation_id=1001)
            + request_frame(produce_request("other", batch), NAMES_TOPICS, correlation_id=1002)
            + request_frame(produce_request("orders", batch), NAMES_TOPICS, correlation_id=1003)
        )
        # The last one is what the first one waits for: so it is processed before the response to the first.
        assert [int.from_bytes(client.receive()[:4]) for _ in range(3)] == [1001, 1002, 1003]
