"""The monitor as a service that a host starts, serves and stops (kaspar.web.hosting)."""

from collections.abc import Mapping, Sequence

from kaspar.base.clock import Clock
from kaspar.monitor.core import Monitor
from kaspar.monitor.http.app import make_app
from kaspar.monitor.http.responses import burrow_error
from kaspar.monitor.settings import MonitorConfig, MonitorSettings
from kaspar.web.asgi import App
from kaspar.web.errors import ErrorForm


class MonitorServer:
    """`values` are settings as texts. Raises InvalidSetting with a sentence."""

    def __init__(self, values: Mapping[str, str], *, clock: Clock | None = None) -> None:
        config = MonitorConfig.of(values)
        self.monitor = Monitor(config, clock=clock)
        self._settings = config.settings
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

    async def stop(self) -> None:
        await self.monitor.stop()
