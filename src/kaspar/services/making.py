"""Creates the services of one process from their settings. A service's packages are imported only when it is
created."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kaspar.services.extras import check_installed
from kaspar.web.hosting import HostedService
from kaspar.web.settings import WebSettings

Values = Mapping[str, str]
"""Settings as strings, with Confluent's names where Confluent has them."""


def make_services(settings: Mapping[str, Values]) -> Sequence[HostedService]:
    """Create the services. `settings` are keyed by service name. Raises KasparError."""
    services: dict[str, HostedService] = {}
    for name, values in settings.items():
        check_installed(name)
        services[name] = _MAKERS[name](values, services)
    return tuple(services.values())


def warnings_about(service: HostedService, values: Values) -> list[str]:
    """Warnings about settings without effect."""
    settings: type[WebSettings] = type(service.settings)
    return settings.warnings_about(values)


Made = Mapping[str, HostedService]
"""The services that the process already has, by name."""


def _make_registry(values: Values, beside: Made) -> HostedService:
    from kaspar.registry.running import RegistryServer
    from kaspar.registry.settings import RegistryConfig

    return RegistryServer(RegistryConfig.of(values))


def _make_rest(values: Values, beside: Made) -> HostedService:
    from kaspar.rest.running import RestServer

    return RestServer(values)


def _make_monitor(values: Values, beside: Made) -> HostedService:
    from kaspar.monitor.running import MonitorServer

    return MonitorServer(values)


def _make_console(values: Values, beside: Made) -> HostedService:
    """If the monitor runs in the same process, the console shows its observations, so that brokers are queried once for
    both.
    """
    from kaspar.console.running import ConsoleServer
    from kaspar.monitor.running import MonitorServer

    monitor = beside.get("monitor")
    return ConsoleServer(values, monitor.monitor if isinstance(monitor, MonitorServer) else None)


_MAKERS: Final[Mapping[str, Callable[[Values, Made], HostedService]]] = {
    "registry": _make_registry,
    "rest": _make_rest,
    "monitor": _make_monitor,
    "console": _make_console,
}
