"""The console as a service that a host process starts, serves and stops (kaspar.web.hosting)."""

import asyncio
from collections.abc import Mapping, Sequence

from kaspar.base.clock import Clock, SystemClock
from kaspar.callers.clients import KafkaClients
from kaspar.callers.sessions import AdminSessions
from kaspar.console.context import ConsoleContext
from kaspar.console.http import audit
from kaspar.console.http.app import make_app
from kaspar.console.http.assets import Assets
from kaspar.console.http.errors import CallFailed, error_form
from kaspar.console.http.guard import Guard
from kaspar.console.problems import Conflict, NotThere, Unacceptable
from kaspar.console.registries import Registries
from kaspar.console.resources.events import events_endpoint
from kaspar.console.resources.records import record_endpoints
from kaspar.console.routes import CHANNELS, ENDPOINTS
from kaspar.console.settings import ConsoleConfig, ConsoleSettings
from kaspar.console.sharing import SharedReads
from kaspar.monitor.core import Monitor
from kaspar.monitor.settings import MonitorConfig
from kaspar.web.asgi import App
from kaspar.web.errors import ErrorForm
from kaspar.web.hosts import AllowedHosts


class ConsoleServer:
    """The console. `values` are its settings as texts. With a `monitor`, which the caller starts and stops, it shows
    that monitor's data; otherwise it has its own. Raises InvalidSetting with a sentence."""

    def __init__(
        self, values: Mapping[str, str], monitor: Monitor | None = None, *, clock: Clock | None = None
    ) -> None:
        self._config = ConsoleConfig.of(values)
        settings = self._config.settings
        self._clock = clock or SystemClock()
        self._clients = KafkaClients(
            self._config, client_id="kaspar-console", propagate=settings.kaspar_propagate_identity
        )
        self._registries = Registries(self._config.registry, identities=settings.kaspar_identity_clients)
        self._owns_monitor = monitor is None
        self._monitor = monitor or Monitor(MonitorConfig.of(values), clock=clock)
        self._context: ConsoleContext | None = None
        self._app: App | None = None
        self.listeners: tuple[str, ...] = settings.listeners

    @property
    def name(self) -> str:
        return "console"

    @property
    def settings(self) -> ConsoleSettings:
        return self._config.settings

    @property
    def error_form(self) -> ErrorForm:
        return error_form

    @property
    def app(self) -> App:
        assert self._app is not None, "the console is not running"
        return self._app

    def bound(self, listeners: Sequence[str]) -> None:
        self.listeners = tuple(listeners)

    async def start(self) -> None:
        """Start the console. This needs no broker: if there is none, the page says so."""
        settings = self._config.settings
        audit.write_to(settings.kaspar_console_audit_file)
        context = ConsoleContext(
            self._config,
            self._clients,
            AdminSessions(
                self._clients,
                identities=settings.kaspar_identity_clients,
                final=(CallFailed, Unacceptable, NotThere, Conflict),
                name="console-admin",
            ),
            SharedReads(self._clock),
            self._registries,
            self._monitor,
            self._clock,
        )
        self._context = context
        if self._owns_monitor:
            await self._monitor.start()
        endpoints = (
            *ENDPOINTS,
            *record_endpoints(),
            events_endpoint(CHANNELS, max_pages=settings.kaspar_console_max_pages),
        )
        hosts = await asyncio.to_thread(AllowedHosts, self.listeners, settings.allowed_hosts)
        self._app = Guard(make_app(context, endpoints, Assets.of_package()), hosts, settings.kaspar_console_origins)

    async def stop(self) -> None:
        context, self._context = self._context, None
        if context is None:
            return
        if self._owns_monitor:
            await self._monitor.stop()
        await context.reads.close()
        await context.sessions.close()
        context.registries.close()
