"""The console's HTTP against a real broker: many open pages, and a console that changes nothing."""

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
import pytest

from kaspar.console.running import ConsoleServer
from kaspar.supervisor.ports import free_ports
from kaspar.testing import Broker
from kaspar.web.host_thread import HostThread
from tests.peers.observed import wait_until

PAGES = 100
EVENTS = 10
CHANGE = {"X-Kaspar-Console": "1"}
FAST = {"cluster.interval.ms": "200", "lag.interval.ms": "200"}


@pytest.fixture(scope="module")
def metrics_url() -> str:
    return f"127.0.0.1:{next(iter(free_ports()))}"


@pytest.fixture(scope="module")
def broker(metrics_url: str) -> Iterator[Broker]:
    with Broker(process=True, overrides={"kaspar.metrics.listener": metrics_url}) as running:
        yield running


@contextmanager
def console_of(broker: Broker, settings: Mapping[str, str] | None = None) -> Iterator[httpx.Client]:
    values = {"listeners": "http://127.0.0.1:0", "bootstrap.servers": broker.bootstrap_servers, **(settings or {})}
    host = HostThread([ConsoleServer(values)])
    host.start()
    try:
        with httpx.Client(base_url=host.urls["console"][0], timeout=30) as client:
            yield client
    finally:
        host.stop()


def _served(metrics_url: str) -> float:
    """How many requests the broker has served."""
    page = httpx.get(f"http://{metrics_url}/metrics").text
    counts = re.findall(r"^kafka_network_requestmetrics_requests_total{[^}]*} (\S+)", page, re.M)
    return sum(map(float, counts))


class Pages:
    """Open pages that watch the brokers and the overview, each in a thread that reads what it is sent."""

    def __init__(self, url: httpx.URL, count: int) -> None:
        self._url = url
        self._stopping = threading.Event()
        self.received = [0] * count
        self._threads = [threading.Thread(target=self._read, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _read(self, number: int) -> None:
        events = self._url.join("/api/events?topic=brokers&topic=cluster&topic=overview")
        with httpx.stream("GET", events, timeout=30) as stream:
            assert stream.status_code == 200
            for line in stream.iter_lines():
                self.received[number] += line.startswith("event: ")
                if self._stopping.is_set():
                    return

    def close(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)


def _requests_per_second(console: httpx.Client, metrics_url: str, count: int) -> float:
    """What the broker serves while so many pages are open, from the moment that each has got all topics until each has
    got more events, which come with the monitor's rounds."""
    pages = Pages(console.base_url, count)
    try:
        wait_until(lambda: min(pages.received) >= 3, "every page has got all topics")
        before, began, received = _served(metrics_url), time.monotonic(), list(pages.received)
        wait_until(
            lambda: all(now >= then + EVENTS for now, then in zip(pages.received, received, strict=True)),
            "every page has got more events",
        )
        return (_served(metrics_url) - before) / (time.monotonic() - began)
    finally:
        pages.close()


def test_a_hundred_pages_cost_the_broker_what_one_costs(broker: Broker, metrics_url: str) -> None:
    with console_of(broker, {**FAST, "server.connection.limit": "500"}) as console:
        one = _requests_per_second(console, metrics_url, 1)
        many = _requests_per_second(console, metrics_url, PAGES)
        assert one > 0
        assert many <= 1.2 * one + 2, (one, many)


def test_more_pages_than_allowed_are_refused_with_a_sentence(broker: Broker) -> None:
    with console_of(broker, {"kaspar.console.max.pages": "1"}) as console:
        with console.stream("GET", "/api/events?topic=cluster") as first:
            lines = first.iter_lines()
            while not next(lines).startswith("event: cluster"):
                pass
            refused = console.get("/api/events?topic=cluster")
            assert refused.status_code == 503
            assert "kaspar.console.max.pages is 1" in refused.json()["message"]
        wait_until(lambda: _is_accepted(console), "the page that was closed makes room")


def _is_accepted(console: httpx.Client) -> bool:
    with console.stream("GET", "/api/events?topic=cluster") as stream:
        return stream.status_code == 200


def test_a_stream_of_something_unknown_is_refused(broker: Broker) -> None:
    with console_of(broker) as console:
        refused = console.get("/api/events?topic=nothing")
        assert (refused.status_code, refused.json()["code"]) == (400, "Bad Request")


def test_a_read_only_console_refuses_changes_and_shows_everything(broker: Broker) -> None:
    with console_of(broker, {"kaspar.console.read.only": "true"}) as console:
        refused = console.post("/api/topics", json={"name": "never"}, headers=CHANGE)
        assert refused.status_code == 403
        assert "read-only" in refused.json()["message"]
        assert console.get("/api/session").json()["is_read_only"] is True
        assert console.get("/api/topics?search=never").json()["matching"] == 0


def test_what_was_changed_is_seen_at_once(broker: Broker) -> None:
    with console_of(broker) as console:
        assert console.get("/api/topics?search=seen-at-once").json()["matching"] == 0
        created = console.post("/api/topics", json={"name": "seen-at-once", "partitions": 2}, headers=CHANGE)
        assert created.json()["partitions"] == 2
        assert console.get("/api/topics?search=seen-at-once").json()["matching"] == 1
        settings = {"set": {"retention.ms": "1000"}, "reset": []}
        assert console.put("/api/topics/seen-at-once/settings", json=settings, headers=CHANGE).status_code == 204
        shown = {each["name"]: each for each in console.get("/api/topics/seen-at-once/settings").json()}
        assert (shown["retention.ms"]["value"], shown["retention.ms"]["is_own"]) == ("1000", True)
        assert shown["retention.ms"]["documentation"]


def test_without_a_broker_the_page_is_served_and_the_api_says_why() -> None:
    port = next(iter(free_ports()))
    values = {
        "listeners": "http://127.0.0.1:0",
        "bootstrap.servers": f"127.0.0.1:{port}",
        "client.default.api.timeout.ms": "300",
    }
    host = HostThread([ConsoleServer(values)])
    host.start()
    try:
        with httpx.Client(base_url=host.urls["console"][0], timeout=30) as console:
            assert console.get("/").status_code == 200
            failed = console.get("/api/topics")
            assert failed.status_code == 503
            assert failed.json()["message"].startswith("No broker can be reached")
    finally:
        host.stop()
