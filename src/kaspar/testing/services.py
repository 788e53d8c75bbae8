"""The services of `Broker(registry=True, rest=True)` and of `Cluster`: in a thread of this process, on free ports."""

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.supervisor.ports import free_ports

if TYPE_CHECKING:
    from kaspar.web.host import Host
    from kaspar.web.hosting import HostedService

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0


class Services:
    """None, one or both. They keep their ports when they are started again."""

    def __init__(self, *, registry: bool, rest: bool) -> None:
        names = [name for name, wanted in (("registry", registry), ("rest", rest)) if wanted]
        self._urls = {name: f"http://127.0.0.1:{port}" for name, port in zip(names, free_ports(), strict=False)}
        self._running: _InThread | None = None

    @property
    def broker_settings(self) -> Mapping[str, str]:
        """With which a registry elects its leader, itself, at once."""
        return {"group.initial.rebalance.delay.ms": "0"} if "registry" in self._urls else {}

    def start(self, bootstrap_servers: str) -> None:
        """Return when they serve. Those that run already, because a broker was killed under them, go on."""
        if self._urls and self._running is None:
            self._running = _InThread(self._urls, bootstrap_servers)

    def url(self, name: str) -> str:
        if name not in self._urls:
            raise KasparError(f"{name} does not run: start the broker with {name}=True")
        return self._urls[name]

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()


class _InThread:
    def __init__(self, urls: Mapping[str, str], bootstrap_servers: str) -> None:
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Event | None = None
        self._thread = threading.Thread(
            target=self._run, args=(urls, bootstrap_servers), name="kaspar-services", daemon=True
        )
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            self._request_stop()
            raise KasparError(f"the services did not start within {START_TIMEOUT_S:.0f} s")
        self._raise_problem()

    def _run(self, urls: Mapping[str, str], bootstrap_servers: str) -> None:
        import uvloop

        from kaspar.web.host import Host

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(Host(_services(urls, bootstrap_servers))))
        except BaseException as problem:
            self._problem = problem
        finally:
            self._started.set()

    async def _serve(self, host: "Host") -> None:
        self._loop, self._stop_requested = asyncio.get_running_loop(), asyncio.Event()
        try:
            await host.start()
            self._started.set()
            await self._stop_requested.wait()
        finally:
            await host.stop()

    def _request_stop(self) -> None:
        if self._loop is not None and self._stop_requested is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: they have ended
                self._loop.call_soon_threadsafe(self._stop_requested.set)

    def _raise_problem(self) -> None:
        if self._problem is not None:
            self._thread.join()
            raise self._problem

    def stop(self) -> None:
        self._request_stop()
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise KasparError(f"the services did not stop within {STOP_TIMEOUT_S:.0f} s")
        self._raise_problem()


def _services(urls: Mapping[str, str], bootstrap_servers: str) -> "list[HostedService]":
    from kaspar.services.making import make_service

    settings: dict[str, dict[str, str]] = {
        "registry": {"kafkastore.bootstrap.servers": bootstrap_servers, "kafkastore.topic.replication.factor": "1"},
        "rest": {"bootstrap.servers": bootstrap_servers},
    }
    if "registry" in urls:
        settings["rest"]["schema.registry.url"] = urls["registry"]
    return [make_service(name, {"listeners": url, **settings[name]}) for name, url in urls.items()]
