"""Options that begin with `kafka.`: how to connect to the cluster, for reading and for writing.

This module has what both directions share; security_options.py has the options that protect the connections.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kaspar.spark.security_options import PREFIX, InvalidOption, SecurityOptions

if TYPE_CHECKING:
    from kaspar.client import Client

__all__ = ["PREFIX", "ConnectionSettings", "InvalidOption", "connection_settings", "kafka_settings", "whole_number"]

_HIGHEST_PORT = 65_535
_CLIENT_ID = "kaspar-spark"
_REQUEST_TIMEOUT_MS = 30_000  # the default of Kafka's clients


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to open a client, on the driver and in each task."""

    bootstrap_servers: str
    client_id: str = _CLIENT_ID
    request_timeout_ms: int = _REQUEST_TIMEOUT_MS
    security: SecurityOptions = field(default_factory=SecurityOptions)

    def client(self) -> "Client":
        """Open a client. Raises InvalidOption if the files of the security options cannot be used here."""
        from kaspar.client import Client  # a process that only parses options does not load it

        return Client(
            self.bootstrap_servers,
            client_id=self.client_id,
            timeout_s=self.request_timeout_ms / 1000,
            security=self.security.load(),
        )


def kafka_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The Kafka client settings among the options, without their prefix, in lower case."""
    return {
        name.lower().removeprefix(PREFIX): value for name, value in options.items() if name.lower().startswith(PREFIX)
    }


def connection_settings(settings: Mapping[str, str]) -> ConnectionSettings:
    """The connection settings in what kafka_settings() returns. Raises InvalidOption."""
    security = SecurityOptions.of(settings)
    servers = settings.get("bootstrap.servers", "").strip()
    if not servers:
        raise InvalidOption("Option 'kafka.bootstrap.servers' is required: host:port of one or more brokers.")
    for entry in filter(str.strip, servers.split(",")):
        host, colon, port = entry.strip().rpartition(":")
        if not (host and colon and port.isdecimal() and int(port) <= _HIGHEST_PORT):
            raise InvalidOption(f"Option 'kafka.bootstrap.servers' must be host:port,host:port, not {entry!r}.")
    return ConnectionSettings(
        bootstrap_servers=servers,
        client_id=settings.get("client.id", _CLIENT_ID),
        request_timeout_ms=whole_number(settings, "request.timeout.ms", _REQUEST_TIMEOUT_MS, at_least=1, prefix=PREFIX),
        security=security,
    )


def whole_number(options: Mapping[str, str], name: str, default: int, *, at_least: int = 0, prefix: str = "") -> int:
    """The option of that name, which must be a whole number."""
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError:
        raise InvalidOption(f"Option '{prefix}{name}' must be an integer, not {text!r}.") from None
    if value < at_least:
        raise InvalidOption(f"Option '{prefix}{name}' must be at least {at_least}, not {value}.")
    return value
