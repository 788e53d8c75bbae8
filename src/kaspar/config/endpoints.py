"""Parses the addresses in settings: listeners, advertised listeners, per-address limits, the metrics listener."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kaspar.base.errors import InvalidSetting

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LISTENER = re.compile(r"([^:/]+)://\[?([0-9a-zA-Z\-%._:]*?)\]?:(-?[0-9]+)")
_HIGHEST_PORT = 65535
_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]+\.(?:(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.)?")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a broker. An empty host means all addresses of the machine."""

    listener: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def listening_endpoints(
    listeners: Sequence[str], protocol_map: str, controller_listeners: Sequence[str]
) -> tuple[Endpoint, ...]:
    protocols = _protocol_map(protocol_map)
    controllers = {name.upper() for name in controller_listeners}
    endpoints = [_read("listeners", text) for text in listeners if text]
    _check_distinct(endpoints)
    return tuple(_with_protocol(endpoint, protocols) for endpoint in endpoints if endpoint.listener not in controllers)


def advertised_endpoints(listening: Sequence[Endpoint], advertised: Sequence[str] | None) -> tuple[Endpoint, ...]:
    if not advertised:
        return tuple(listening)
    by_name = {endpoint.listener: endpoint for endpoint in listening}
    endpoints = [_read("advertised.listeners", text) for text in advertised if text]
    names = [endpoint.listener for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise InvalidSetting("Each listener must have a different name, advertised.listeners: " + ",".join(advertised))
    for endpoint in endpoints:
        if endpoint.listener not in by_name:
            raise InvalidSetting(
                f"advertised.listeners contains the listener {endpoint.listener}, which is not in listeners"
            )
        if endpoint.host in ("0.0.0.0", "::"):
            raise InvalidSetting(
                f"advertised.listeners cannot use the nonroutable meta-address {endpoint.host}. "
                "Use a routable IP address."
            )
    return tuple(
        replace(endpoint, security_protocol=by_name[endpoint.listener].security_protocol) for endpoint in endpoints
    )


def listener_prefix(listener: str) -> str:
    """The prefix of the settings of one listener (KIP-103)."""
    return f"listener.name.{listener.lower()}."


def without_listener_prefix(name: str) -> str:
    """The name of a setting without its listener prefix, which may also contain a SASL mechanism of the listener."""
    return _LISTENER_PREFIX.sub("", name, count=1)


def connection_limits(text: str) -> dict[str, int]:
    """Parse `host:number,host:number` to a mapping."""
    limits: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, colon, number = part.rpartition(":")
        if not colon or not host or not number.strip().isdecimal():
            raise InvalidSetting(f"max.connections.per.ip.overrides contains {part!r}, which is not host:number")
        limits[host.strip().strip("[]")] = int(number)
    return limits


def host_and_port(name: str, text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise InvalidSetting(f"Invalid value {text} for configuration {name}: it must be host:port")
    return host.strip("[]"), int(port)


def _read(setting: str, text: str) -> Endpoint:
    match = _LISTENER.fullmatch(text)
    if match is None or not 0 <= int(match[3]) <= _HIGHEST_PORT:
        raise InvalidSetting(f"{setting} contains {text!r}, which is not of the form NAME://host:port")
    return Endpoint(match[1].upper(), match[2], int(match[3]), "")


def _protocol_map(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (piece.strip().upper() for piece in part.partition(":"))
        if not colon or not name or protocol not in SECURITY_PROTOCOLS:
            raise InvalidSetting(
                f"listener.security.protocol.map contains {part!r}: it must be a listener name, a colon and one of "
                + ", ".join(SECURITY_PROTOCOLS)
            )
        protocols[name] = protocol
    return protocols


def _with_protocol(endpoint: Endpoint, protocols: dict[str, str]) -> Endpoint:
    protocol = protocols.get(endpoint.listener)
    if protocol is None:
        raise InvalidSetting(
            f"No security protocol defined for listener {endpoint.listener}: add it to listener.security.protocol.map"
        )
    return replace(endpoint, security_protocol=protocol)


def _check_distinct(endpoints: Sequence[Endpoint]) -> None:
    written = ",".join(str(endpoint) for endpoint in endpoints)
    if len({endpoint.listener for endpoint in endpoints}) < len(endpoints):
        raise InvalidSetting(f"Each listener must have a different name, listeners: {written}")
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for same_port in by_port.values():
        families = [_family(endpoint.host) for endpoint in same_port]
        if len(same_port) > 1 and sorted(families, key=str) != [4, 6]:
            raise InvalidSetting(
                "Each listener must have a different port unless exactly one listener has an IPv4 address "
                f"and the other IPv6 address, listeners: {written}"
            )


def _family(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None
