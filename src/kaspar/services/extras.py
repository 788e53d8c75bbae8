"""Whether what a service needs is installed: it comes with the extra of the package that has the service's name, as
`kaspar[registry]`.
"""

import importlib.util

from kaspar.base.errors import KasparError
from kaspar.web.catalogue import SERVICES


def missing_packages(service: str) -> list[str]:
    """Those that are not installed. Looks for them without importing them."""
    return [package for module, package in SERVICES[service].packages.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def check_installed(service: str) -> None:
    """Raises KasparError with a sentence that says how to install what is missing."""
    if missing := missing_packages(service):
        raise KasparError(
            f"the {SERVICES[service].title} needs {', '.join(missing)}, which is not installed: "
            f"pip install 'kaspar[{service}]'"
        )
