"""Makes the services from their settings. What a service needs is imported when it is made."""

from collections.abc import Callable, Mapping
from typing import Final

from kaspar.services.extras import check_installed
from kaspar.web.hosting import HostedService
from kaspar.web.settings import WebSettings


def make_service(name: str, values: Mapping[str, str]) -> HostedService:
    """`values` are texts, with Confluent's names. Raises KasparError with a sentence."""
    check_installed(name)
    return _MAKERS[name](values)


def warnings_about(service: HostedService, values: Mapping[str, str]) -> list[str]:
    """Warnings about settings without effect."""
    settings: type[WebSettings] = type(service.settings)
    return settings.warnings_about(values)


def _make_registry(values: Mapping[str, str]) -> HostedService:
    from kaspar.registry.running import RegistryServer
    from kaspar.registry.settings import RegistryConfig

    return RegistryServer(RegistryConfig.of(values))


def _make_rest(values: Mapping[str, str]) -> HostedService:
    from kaspar.rest.running import RestServer

    return RestServer(values)


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, str]], HostedService]]] = {
    "registry": _make_registry,
    "rest": _make_rest,
}
SERVICES: Final = tuple(_MAKERS)
