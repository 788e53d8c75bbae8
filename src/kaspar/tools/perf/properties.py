"""Reads client properties from files and command lines, and creates a client from them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kaspar.base.errors import InvalidSetting
from kaspar.client import Client
from kaspar.tools.command_line import CommandFailed, load_properties
from kaspar.tools.librdkafka.values import Number

if TYPE_CHECKING:
    from kaspar.security.client import ClientSecurity

Properties = dict[str, str]


def read_properties(config_file: str | None, words: Sequence[str] | None) -> Properties:
    """The properties of the file, overridden by those of the command line. Raises CommandFailed."""
    properties = load_properties(config_file)
    for word in words or ():
        name, separator, value = word.partition("=")
        if not separator or not value or "=" in value:
            raise CommandFailed(f"Invalid property: {word}")
        properties[name] = value
    return properties


def number(properties: Mapping[str, str], name: str, default: int, *, kind: Number | None = None) -> int:
    if name not in properties:
        return default
    return (kind or Number("INT", 0)).parse(name, properties[name])


def open_client(properties: Mapping[str, str], *, client_id: str) -> Client:
    """Create a client. Nothing is sent yet. Raises CommandFailed."""
    servers = properties.get("bootstrap.servers", "")
    if not servers:
        raise CommandFailed("No resolvable bootstrap urls given in bootstrap.servers")
    try:
        timeout_ms = number(properties, "request.timeout.ms", 30_000)
        return Client(
            servers,
            client_id=properties.get("client.id") or client_id,
            timeout_s=timeout_ms / 1000,
            security=_security(properties),
        )
    except InvalidSetting as problem:
        raise CommandFailed(str(problem)) from None
    except ValueError:
        raise CommandFailed(f"Invalid url in bootstrap.servers: {servers}") from None


def _security(properties: Mapping[str, str]) -> "ClientSecurity | None":
    if "security.protocol" not in properties:
        return None
    from kaspar.security.client import client_security  # not needed by most runs

    return client_security(dict(properties))
