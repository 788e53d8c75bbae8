"""The monitor as a service that a host starts, serves and stops (kaspar.web.hosting)."""

from collections.abc import Mapping, Sequence

from kaspar.base.clock import Clock, SystemClock
from kaspar.callers.clients import KafkaClients
from kaspar.callers.sessions import AdminSessions
from kaspar.monitor.core import Monitor
from kaspar.monitor.http.app import make_app
from kaspar.monitor.http.permission import Permission
from kaspar.monitor.http.responses import burrow_error
from kaspar.monitor.settings import MonitorConfig, MonitorSettings
from kaspar.web.asgi import App
from kaspar.web.errors import ErrorForm


class MonitorServer:
    """`values` are settings as texts. Raises InvalidSetting with a sentence."""

    def __init__(self, values: Mapping[str, str], *, clock: Clock | None = None) -> None:
        config = MonitorConfig.of(values)
        self._clock = clock or SystemClock()
        self.monitor = Monitor(config, clock=self._clock)
        self._settings = config.settings
        self._clients: KafkaClients | None = None
        self._sessions: AdminSessions | None = None
        if config.settings.kaspar_propagate_identity:
            self._clients = KafkaClients(config, client_id="kaspar-monitor", propagate=True)
        self._app: App | None = None
        self.listeners: tuple[str, ...] = config.settings.listeners

    @property
    def name(self) -> str:
        return "monitor"

    @property
    def settings(self) -> MonitorSettings:
        return self._settings

    @property
    def error_form(self) -> ErrorForm:
        return burrow_error

    @property
    def app(self) -> App:
        assert self._app is not None, "the monitor is not running"
        return self._app

    def bound(self, listeners: Sequence[str]) -> None:
        self.listeners = tuple(listeners)

    async def start(self) -> None:
        """Needs no broker."""
        await self.monitor.start()
        self._app = make_app(self.monitor)
        if self._clients is not None:
            identities = self._settings.kaspar_identity_clients
            self._sessions = AdminSessions(self._clients, identities=identities, name="monitor-callers")
            self._app = Permission(self._app, self._sessions, self._clock)

    async def stop(self) -> None:
        await self.monitor.stop()
        if self._sessions is not None:
            await self._sessions.close()
