"""The HTTP services, each declared once: its name, its port and the packages that it needs.

Used by the process that hosts the services (kaspar.services), by the supervisor, and by the commands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    """Used in its options, its settings file and its extra: `--rest-port`, `rest.properties`, `kaspar[rest]`."""
    title: str
    """The name for people, used after "the"."""
    port: int
    """The default port."""
    packages: Mapping[str, str]
    """The modules that it needs, and the packages that provide them."""


_REGISTRY_PACKAGES: Final = {
    "fastavro": "fastavro",
    "jsonschema": "jsonschema",
    "google.protobuf": "protobuf",
    "grpc_tools": "grpcio-tools",
    "httpx": "httpx",
}
_REST_PACKAGES: Final = {**_REGISTRY_PACKAGES, "confluent_kafka": "confluent-kafka"}
_MONITOR_PACKAGES: Final = {"httpx": "httpx"}

SERVICES: Final[Mapping[str, Service]] = {
    service.name: service
    for service in (
        Service("registry", "schema registry", 8081, _REGISTRY_PACKAGES),
        Service("rest", "REST proxy", 8082, _REST_PACKAGES),
        Service("monitor", "monitor", 8000, _MONITOR_PACKAGES),
        Service("console", "console", 8080, _REST_PACKAGES | _MONITOR_PACKAGES),
    )
}
