"""Every registry client, by name, and which of them can do what."""

from collections.abc import Callable

from tests.compat.registry.clients.api import Call, RegistryClient
from tests.compat.registry.clients.foreign import FOREIGN, RustConverter
from tests.compat.registry.clients.python import ConfluentPython

_CLASSES = (ConfluentPython, *FOREIGN)
CLIENTS: dict[str, Callable[[str], RegistryClient]] = {each.name: each for each in (*_CLASSES, RustConverter)}


def able(*calls: Call) -> list[str]:
    """The names of the clients that can do all of this, among those of every run."""
    return [each.name for each in _CLASSES if not each.cannot & set(calls)]
