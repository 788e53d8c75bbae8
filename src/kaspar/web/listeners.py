"""The listeners of a service: parses `listeners`, and binds the sockets before anything starts."""

import contextlib
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from kaspar.base.errors import InvalidSetting, KasparError

_LISTENER: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:\[([0-9A-Fa-f:.%]+)\]|([^:/\[\]]*)):([0-9]{1,5})/?")
_SCHEMES: Final = ("http", "https")
_HIGHEST_PORT: Final = 65_535
_EVERY_ADDRESS: Final = ("", "::")
BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """An empty host means every address of the machine."""

    scheme: str
    host: str
    port: int

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host or "0.0.0.0"
        return f"{self.scheme}://{host}:{self.port}"


def parse_listeners(listeners: Sequence[str], protocol_map: Sequence[str] = ()) -> tuple[ListenerAddress, ...]:
    """Parse the settings. Raises InvalidSetting."""
    schemes = {scheme: scheme for scheme in _SCHEMES} | _parse_map(protocol_map)
    addresses = tuple(_parse(text, schemes) for text in listeners if text)
    if not addresses:
        raise InvalidSetting("listeners is empty: it must be of the form http://host:port")
    return addresses


def _parse(text: str, schemes: dict[str, str]) -> ListenerAddress:
    match = _LISTENER.fullmatch(text)
    if match is None or int(match[4]) > _HIGHEST_PORT:
        raise InvalidSetting(f"listeners contains {text!r}, which is not of the form http://host:port")
    scheme = schemes.get(match[1].lower())
    if scheme is None:
        raise InvalidSetting(
            f"listeners contains {text!r}: listener.protocol.map must say whether {match[1]} is http or https"
        )
    return ListenerAddress(scheme, match[2] or match[3] or "", int(match[4]))


def _parse_map(protocol_map: Sequence[str]) -> dict[str, str]:
    schemes = {}
    for part in filter(None, protocol_map):
        name, _, scheme = (piece.strip().lower() for piece in part.partition(":"))
        if not name or scheme not in _SCHEMES:
            raise InvalidSetting(f"listener.protocol.map contains {part!r}, which is not of the form NAME:http")
        schemes[name] = scheme
    return schemes


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener with its socket. `address` has the actual port."""

    address: ListenerAddress
    socket: socket.socket

    @property
    def is_loopback(self) -> bool:
        """Whether it can be reached from this machine only."""
        return ip_address(self.socket.getsockname()[0].partition("%")[0]).is_loopback


def bind_all(addresses: Sequence[ListenerAddress], what: str) -> list[Listener]:
    """Bind all addresses or none. `what` names the service in error messages. Raises KasparError."""
    with contextlib.ExitStack() as opened:
        listeners = []
        for address in addresses:
            bound = opened.enter_context(bind(address.host, address.port, what))
            taken = ListenerAddress(address.scheme, address.host, bound.getsockname()[1])
            listeners.append(Listener(taken, bound))
        opened.pop_all()
        return listeners


def bind(host: str, port: int, what: str) -> socket.socket:
    """A listening socket. Clients that connect before the service has started wait in its backlog."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(
            (address[0], address[1]),
            family=family,
            backlog=BACKLOG,
            dualstack_ipv6=family == socket.AF_INET6 and host in _EVERY_ADDRESS and socket.has_dualstack_ipv6(),
        )
    except socket.gaierror as problem:
        raise KasparError(f"cannot resolve the host '{host}' of {what}: {problem.strerror}") from None
    except OSError as problem:
        # create_server() appends the address to strerror.
        reason = problem.strerror if problem.errno is None else os.strerror(problem.errno)
        raise KasparError(f"cannot serve {what} on {host or '*'}:{port}: {reason}") from None
