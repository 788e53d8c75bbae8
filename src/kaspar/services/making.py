"""Creates the services of one process from their settings. The packages of a service are imported when it is
created."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kaspar.services.extras import check_installed
from kaspar.web.hosting import HostedService
from kaspar.web.settings import WebSettings

Values = Mapping[str, str]
"""Settings as texts, with Confluent's names where Confluent has them."""


def make_services(settings: Mapping[str, Values]) -> Sequence[HostedService]:
    """By the service's name. Raises KasparError with a sentence."""
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
"""What is in the same process already, by name."""


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
    """Of a monitor in the same process, it shows what that one sees: the brokers are asked once for both."""
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
