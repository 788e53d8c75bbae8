"""The host names that requests to a service may use.

A page of another site can make a name of its own resolve to a service's address (DNS rebinding). For the browser, page
and service are one site then, and the page may read and change everything that is served without a log-in. The name is
in the Host header, and gives the page away.
"""

import functools
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit


class AllowedHosts:
    """`localhost`, the names of this machine, those of the listeners, and those of the settings. An IP address is
    always allowed: no other site can have it as its name."""

    def __init__(self, listeners: Sequence[str], names: Sequence[str]) -> None:
        """Looks up the name of this machine, which may take as long as a name server does."""
        listening = {urlsplit(each).hostname or "" for each in listeners}
        self._names = frozenset(name.lower().rstrip(".") for name in (*_own_names(), *listening, *names) if name)

    def allow(self, host: bytes | None) -> bool:
        """`host` is the header, with or without a port."""
        try:
            parts = urlsplit(f"//{(host or b'').decode('ascii')}")
            name = parts.hostname or ""
        except ValueError:
            return False
        if parts.netloc.rpartition("@")[1] or parts.path or parts.query or parts.fragment:
            return False  # a host has none of these
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
