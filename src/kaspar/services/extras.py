"""Checks whether the packages that a service needs are installed. They come with the extra that has the service's name,
such as `kaspar[registry]`.
"""

import importlib.util

from kaspar.base.errors import KasparError
from kaspar.web.catalogue import SERVICES


def missing_packages(service: str) -> list[str]:
    """The packages of a service that are not installed. Does not import them."""
    return [package for module, package in SERVICES[service].packages.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def check_installed(service: str) -> None:
    """Raises KasparError with instructions if packages are missing."""
    if missing := missing_packages(service):
        raise KasparError(
            f"the {SERVICES[service].title} needs {', '.join(missing)}, which is not installed: "
            f"pip install 'kaspar[{service}]'"
        )
