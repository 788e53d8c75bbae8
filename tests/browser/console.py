"""A broker with its console, as the browser tests use it."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from playwright.sync_api import Page, expect

from kaspar.client.admin.session import Admin
from kaspar.console.running import ConsoleServer
from kaspar.supervisor.ports import free_ports
from kaspar.testing import Broker
from kaspar.web.host_thread import HostThread

FAST: Final = {
    "cluster.interval.ms": "500",
    "lag.interval.ms": "500",
    "rates.interval.ms": "500",
    "rates.idle.interval.ms": "500",
}
"""The monitor's rounds: tests wait for them."""


class Console:
    """It can be stopped and started again at the same address."""

    def __init__(self, broker: Broker, values: Mapping[str, str]) -> None:
        self.broker = broker
        self.url = values["listeners"]
        self._values = values
        self._host: HostThread | None = None

    def start(self) -> None:
        self._host = HostThread([ConsoleServer(self._values)])
        self._host.start()

    def stop(self) -> None:
        host, self._host = self._host, None
        if host is not None:
            host.stop()

    def open(self, page: Page, address: str = "#/") -> None:
        """Return when the view has its heading. Within one document only the address changes, as by a link."""
        page.goto(f"{self.url}/{address}")
        expect(page.locator("h1")).to_be_visible()

    def admin(self) -> Admin:
        return Admin(self.broker.bootstrap_servers)


@contextlib.contextmanager
def running_console(
    *, settings: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None, registry: bool = False
) -> Iterator[Console]:
    """With a broker of its own, in another process, so that it can be killed."""
    ports = free_ports()
    metrics_port, console_port = next(ports), next(ports)
    broker_settings = {"kaspar.metrics.listener": f"127.0.0.1:{metrics_port}", **(overrides or {})}
    with Broker(process=True, overrides=broker_settings, registry=registry) as broker:
        values = {
            "listeners": f"http://127.0.0.1:{console_port}",
            "bootstrap.servers": broker.bootstrap_servers,
            "kaspar.metrics.urls": f"1=http://127.0.0.1:{metrics_port}/metrics",
            **FAST,
            **({"schema.registry.url": broker.registry_url} if registry else {}),
            **(settings or {}),
        }
        console = Console(broker, values)
        console.start()
        try:
            yield console
        finally:
            console.stop()
