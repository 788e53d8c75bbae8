"""The host names that requests to a service may use.

A page of another site can make its own host name resolve to a service's address (DNS rebinding). The browser then takes
the page and the service for one site, and the page can read and change everything that is served without
authentication. The Host header contains the page's host name, which identifies such requests.
"""

import functools
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit


class AllowedHosts:
    """`localhost`, the names of this machine, those of the listeners, and those of the settings. An IP address is
    always allowed, because another site cannot have it as its name."""

    def __init__(self, listeners: Sequence[str], names: Sequence[str]) -> None:
        """Resolves the name of this machine, which may be as slow as the name server."""
        listening = {urlsplit(each).hostname or "" for each in listeners}
        self._names = frozenset(name.lower().rstrip(".") for name in (*_own_names(), *listening, *names) if name)

    def allow(self, host: bytes | None) -> bool:
        """`host` is the header's value, with or without a port."""
        try:
            parts = urlsplit(f"//{(host or b'').decode('ascii')}")
            name = parts.hostname or ""
        except ValueError:
            return False
        if parts.netloc.rpartition("@")[1] or parts.path or parts.query or parts.fragment:
            return False  # not valid in a host
        return name.rstrip(".") in self._names or _is_address(name)


@functools.cache
def _own_names() -> frozenset[str]:
    return frozenset({"localhost", socket.gethostname(), socket.getfqdn()})


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
