"""The services of `Broker(registry=True, ...)` and `Cluster`, which run in a thread of this process on free ports."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.supervisor.ports import free_ports

if TYPE_CHECKING:
    from kaspar.web.host_thread import HostThread
    from kaspar.web.hosting import HostedService

_READ_PAGES: Final = {"monitor", "console"}


class Services:
    """The requested services. They keep their ports when they are started again."""

    def __init__(self, **wanted: bool) -> None:
        names = [name for name, is_wanted in wanted.items() if is_wanted]
        self._urls = {name: f"http://127.0.0.1:{port}" for name, port in zip(names, free_ports(), strict=False)}
        self._running: HostThread | None = None

    @property
    def names(self) -> list[str]:
        return list(self._urls)

    @property
    def read_metrics(self) -> bool:
        """Whether one of the services reads the metrics pages of brokers."""
        return not _READ_PAGES.isdisjoint(self._urls)

    @property
    def broker_settings(self) -> Mapping[str, str]:
        """Broker settings that let the only registry become leader without delay."""
        return {"group.initial.rebalance.delay.ms": "0"} if "registry" in self._urls else {}

    def start(self, bootstrap_servers: str, metrics: Mapping[int, str]) -> None:
        """Start the services, and return when they serve requests. Does nothing if they run already, because only the
        broker was killed. `metrics` are the addresses of the brokers' metrics pages, by broker id."""
        if self._urls and self._running is None:
            from kaspar.web.host_thread import HostThread

            running = HostThread(_services(self._urls, bootstrap_servers, metrics))
            running.start()
            self._running = running

    def url(self, name: str) -> str:
        if name not in self._urls:
            raise KasparError(f"{name} does not run: start the broker with {name}=True")
        return self._urls[name]

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()


def _services(urls: Mapping[str, str], bootstrap_servers: str, metrics: Mapping[int, str]) -> "Sequence[HostedService]":
    from kaspar.services.making import make_services

    servers = {"bootstrap.servers": bootstrap_servers}
    registry = {"schema.registry.url": urls["registry"]} if "registry" in urls else {}
    pages = ",".join(f"{broker}=http://{address}/metrics" for broker, address in metrics.items())
    settings: dict[str, dict[str, str]] = {
        "registry": {"kafkastore.bootstrap.servers": bootstrap_servers, "kafkastore.topic.replication.factor": "1"},
        "rest": servers | registry,
        "monitor": servers | {"kaspar.metrics.urls": pages},
        "console": servers | registry | {"kaspar.metrics.urls": pages},
    }
    return make_services({name: {"listeners": url, **settings[name]} for name, url in urls.items()})
