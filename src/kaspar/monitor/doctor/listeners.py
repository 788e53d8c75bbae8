"""The listeners of a broker, according to its settings."""

import ipaddress
from dataclasses import dataclass
from typing import Final

from kaspar.monitor.doctor.observation import Settings

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    protocol: str
    host: str
    """Empty if it listens on all addresses."""
    port: int

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a host name, or empty
            return False

    def __str__(self) -> str:
        return f"{self.name}://{self.host or '0.0.0.0'}:{self.port}"


def listeners_of(settings: Settings, name: str = "listeners") -> list[Listener]:
    """The listeners in the setting `name`. Entries that are not of the form NAME://HOST:PORT are skipped."""
    protocols = dict(
        entry.split(":", 1) for entry in settings.get("listener.security.protocol.map", "").split(",") if ":" in entry
    )
    found = []
    for entry in settings.get(name, "").split(","):
        listener, separator, address = entry.strip().partition("://")
        host, colon, port = address.rpartition(":")
        if separator and colon and port.isdecimal():
            default = listener if listener in _PROTOCOLS else "PLAINTEXT"
            protocol = protocols.get(listener, default).strip().upper()
            found.append(Listener(listener, protocol, host.strip("[]"), int(port)))
    return found
