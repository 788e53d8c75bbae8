"""The monitoring pages, over a real socket."""

import http.client
import logging
import signal
import socket
import threading
import time

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import KasparError
from kaspar.base.stalls import LoopStalls
from kaspar.broker.http import SILENT_SECONDS, HttpServer, health_problem, is_loopback, readiness_problem
from kaspar.broker.metrics import BrokerMetrics, BrokerState
from tests.unit.broker.broker_view import FakeBroker, FakeLogDir, new_metrics


def get(port: int, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.getheader("content-type") or "", response.read().decode()
    finally:
        connection.close()


def serve(metrics: BrokerMetrics, broker: FakeBroker) -> HttpServer:
    server = HttpServer(metrics, broker, host="127.0.0.1", port=0)
    server.start()
    return server


def test_pages_are_served_and_the_port_is_free_afterwards() -> None:
    metrics, broker = new_metrics(), FakeBroker()
    metrics.topics.of("t").bytes_in += 12
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    server = serve(metrics, broker)
    try:
        status, content_type, body = get(server.port, "/metrics")
        assert status == 200
        assert content_type == "text/plain; version=0.0.4; charset=utf-8"
        assert 'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 12\n' in body
        two_families = "name[]=kafka_server_brokertopicmetrics_bytesin_total&name%5B%5D=kaspar_info"
        selected = get(server.port, f"/metrics?{two_families}")[2]
        assert selected.count("# TYPE") == 2
        assert 'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 12\n' in selected
        assert get(server.port, "/healthz")[::2] == (200, "ok\n")
        assert get(server.port, "/readyz")[::2] == (200, "ok\n")
        assert get(server.port, "/other")[0] == 404
        broker.current_state = BrokerState.SHUTTING_DOWN
        assert get(server.port, "/readyz")[::2] == (503, "The broker does not serve clients: it is shutting down.\n")
        assert get(server.port, "/healthz")[0] == 200
    finally:
        server.stop()
    server.stop()
    assert {number: signal.getsignal(number) for number in handlers} == handlers
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)
    HttpServer(metrics, broker, host="127.0.0.1", port=server.port).stop()


def test_a_kept_alive_connection_does_not_hold_up_the_stop() -> None:
    server = serve(new_metrics(), FakeBroker())
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok\n"
    start = time.monotonic()
    server.stop()
    assert time.monotonic() - start < 3
    connection.close()


def test_several_servers_share_a_process() -> None:
    first_broker, second_broker = FakeBroker(), FakeBroker(current_state=BrokerState.STARTING)
    first, second = serve(new_metrics(), first_broker), serve(new_metrics(), second_broker)
    try:
        assert get(first.port, "/readyz")[0] == 200
        assert get(second.port, "/readyz")[0] == 503
        first.stop()
        assert get(second.port, "/healthz")[0] == 200
    finally:
        first.stop()
        second.stop()


def test_stop_right_after_start_and_without_start() -> None:
    server = serve(new_metrics(), FakeBroker())
    server.stop()
    assert not any(thread.name == f"kaspar-http-{server.port}" for thread in threading.enumerate())
    HttpServer(new_metrics(), FakeBroker(), host="127.0.0.1", port=0).stop()


def test_a_taken_port_is_refused_with_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(KasparError, match=rf"cannot serve the metrics page on 127.0.0.1:{port}: .*in use"):
            HttpServer(new_metrics(), FakeBroker(), host="127.0.0.1", port=port)


def test_an_unknown_host_is_refused_with_a_sentence() -> None:
    with pytest.raises(KasparError, match=r"cannot resolve the host 'no\.such\.host\.invalid' of the metrics page"):
        HttpServer(new_metrics(), FakeBroker(), host="no.such.host.invalid", port=0)


@pytest.mark.parametrize(
    ("host", "loopback"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)]
)
def test_which_hosts_are_the_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_an_empty_host_means_every_address() -> None:
    server = HttpServer(new_metrics(), FakeBroker(), host="", port=0)
    server.start()
    try:
        assert get(server.port, "/healthz")[0] == 200
    finally:
        server.stop()


def test_the_handlers_of_uvicorns_loggers_are_left_alone() -> None:
    logger = logging.getLogger("uvicorn.access")
    handler = logging.NullHandler()
    logger.addHandler(handler)
    server = serve(new_metrics(), FakeBroker())
    try:
        assert get(server.port, "/healthz")[0] == 200
        assert handler in logger.handlers
        assert logger.propagate
    finally:
        server.stop()
        logger.removeHandler(handler)


def test_a_loop_that_stands_still_is_not_healthy() -> None:
    clock = ManualClock()
    metrics, broker = new_metrics(), FakeBroker()
    metrics.stalls = LoopStalls(monotonic=clock.monotonic)
    clock.advance(int(SILENT_SECONDS * 1000))
    assert health_problem(metrics, broker) is None
    clock.advance(2100)
    assert health_problem(metrics, broker) == "The event loop has not run for 7.1 s."
    assert readiness_problem(metrics, broker) == "The event loop has not run for 7.1 s."
    metrics.stalls.ticked(loop_cpu_seconds=0)
    assert health_problem(metrics, broker) is None


def test_a_broker_without_a_working_log_directory_is_not_healthy() -> None:
    broker = FakeBroker(directories=[FakeLogDir("/a", online=False), FakeLogDir("/b")])
    assert health_problem(new_metrics(), broker) is None
    broker.directories[1].online = False
    assert health_problem(new_metrics(), broker) == "All log directories are offline: /a, /b."


@pytest.mark.parametrize("state", [state for state in BrokerState if state is not BrokerState.RUNNING])
def test_only_a_running_broker_is_ready(state: BrokerState) -> None:
    problem = readiness_problem(new_metrics(), FakeBroker(current_state=state))
    assert problem is not None
    assert problem.startswith("The broker does not serve clients")


def test_a_broker_whose_controller_cannot_reach_the_store_is_healthy_and_not_ready() -> None:
    broker = FakeBroker(interrupted="The metadata store cannot be used.")
    assert health_problem(new_metrics(), broker) is None
    assert readiness_problem(new_metrics(), broker) == "The metadata store cannot be used."
