"""Whether what a service needs is installed: it comes with the extras of the package, `kaspar[registry]` and
`kaspar[rest]`.
"""

import importlib.util
from collections.abc import Mapping
from typing import Final

from kaspar.base.errors import KasparError

_OF_THE_REGISTRY: Final = {
    "fastavro": "fastavro",
    "jsonschema": "jsonschema",
    "google.protobuf": "protobuf",
    "grpc_tools": "grpcio-tools",
    "httpx": "httpx",
}
NEEDED: Final[Mapping[str, Mapping[str, str]]] = {
    "registry": _OF_THE_REGISTRY,
    "rest": {**_OF_THE_REGISTRY, "confluent_kafka": "confluent-kafka"},
}
"""By the service: the names of modules, and of the packages that bring them."""
TITLES: Final = {"registry": "the schema registry", "rest": "the REST proxy"}


def missing_packages(service: str) -> list[str]:
    """Those that are not installed. Looks for them without importing them."""
    return [package for module, package in NEEDED[service].items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def check_installed(service: str) -> None:
    """Raises KasparError with a sentence that says how to install what is missing."""
    if missing := missing_packages(service):
        raise KasparError(
            f"{TITLES[service]} needs {', '.join(missing)}, which is not installed: pip install 'kaspar[{service}]'"
        )
