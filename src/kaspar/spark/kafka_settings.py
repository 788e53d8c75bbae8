"""Options that begin with `kafka.`: how to connect to the cluster, for reading and for writing.

This module has what both directions share, and is the one place that knows which security protocols the client
supports: only PLAINTEXT yet, so every other security setting is refused rather than ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError

if TYPE_CHECKING:
    from kaspar.client import Client

PREFIX = "kafka."

_SECURITY_PREFIXES = ("sasl.", "ssl.", "security.")
_PLAINTEXT = "plaintext"
_HIGHEST_PORT = 65_535
_CLIENT_ID = "kaspar-spark"
_REQUEST_TIMEOUT_MS = 30_000  # as Kafka's clients have it


class InvalidOption(KasparError):
    """An option of the data source that cannot be used. The text is for the author of the query."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to open a client, on the driver and in each task."""

    bootstrap_servers: str
    client_id: str = _CLIENT_ID
    request_timeout_ms: int = _REQUEST_TIMEOUT_MS

    def client(self) -> "Client":
        from kaspar.client import Client  # a process that only parses options does not load it

        return Client(self.bootstrap_servers, client_id=self.client_id, timeout_s=self.request_timeout_ms / 1000)


def kafka_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The Kafka client settings among the options, without their prefix, in lower case."""
    return {
        name.lower().removeprefix(PREFIX): value for name, value in options.items() if name.lower().startswith(PREFIX)
    }


def connection_settings(settings: Mapping[str, str]) -> ConnectionSettings:
    """From what kafka_settings() returns. Raises InvalidOption."""
    refuse_security(settings)
    servers = settings.get("bootstrap.servers", "").strip()
    if not servers:
        raise InvalidOption("Option 'kafka.bootstrap.servers' must be given: host:port of one or more brokers.")
    for entry in filter(str.strip, servers.split(",")):
        host, colon, port = entry.strip().rpartition(":")
        if not (host and colon and port.isdecimal() and int(port) <= _HIGHEST_PORT):
            raise InvalidOption(f"Option 'kafka.bootstrap.servers' must be host:port,host:port, and {entry!r} is not.")
    return ConnectionSettings(
        bootstrap_servers=servers,
        client_id=settings.get("client.id", _CLIENT_ID),
        request_timeout_ms=whole_number(settings, "request.timeout.ms", _REQUEST_TIMEOUT_MS, at_least=1, prefix=PREFIX),
    )


def refuse_security(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        if not name.startswith(_SECURITY_PREFIXES):
            continue
        if name == "security.protocol" and value.lower() == _PLAINTEXT:
            continue
        raise InvalidOption(
            f"Option '{PREFIX}{name}' is not supported: this client speaks PLAINTEXT only, without TLS and SASL."
        )


def whole_number(options: Mapping[str, str], name: str, default: int, *, at_least: int = 0, prefix: str = "") -> int:
    """The option of that name, which must be a whole number."""
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError:
        raise InvalidOption(f"Option '{prefix}{name}' must be a whole number, and {text!r} is not.") from None
    if value < at_least:
        raise InvalidOption(f"Option '{prefix}{name}' must be at least {at_least}, and {value} is not.")
    return value
