"""The two brokers, each with three listeners: unencrypted, with TLS, and with SASL (SCRAM-SHA-512) unencrypted.

Both have the same key and certificate (P-256), and otherwise the settings of bench/sides.py. TLS is what both negotiate
by default, which is TLS 1.3 with AES-256-GCM. With an authorizer, every client may do everything until the first ACLs
exist. These are created over the unencrypted listener, where every client is `User:ANONYMOUS`.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from bench.sides import Side
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.security.certificates import CertificateAuthority
from tests.peers.kafka import ApacheKafka
from tests.peers.process import BrokerProcess
from tests.peers.wire import free_port

CLEAR, TLS, SASL = "PLAINTEXT", "TLS", "SASL"
MECHANISM = "SCRAM-SHA-512"

_PROTOCOLS: Mapping[str, str] = {CLEAR: "PLAINTEXT", TLS: "SSL", SASL: "SASL_PLAINTEXT"}
_AUTHORIZER: Mapping[str, str] = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Certificates:
    """The files that both brokers and all clients use."""

    authority: Path
    broker: Path

    @classmethod
    def issue(cls, folder: Path, host: str = "127.0.0.1") -> "Certificates":
        authority = CertificateAuthority.new()
        files = cls(folder / "ca.pem", folder / "broker.pem")
        files.authority.write_bytes(authority.certificate)
        files.broker.write_bytes(authority.issue("broker", hosts=["localhost", host]).key_and_chain)
        return files


def secured(side: Side, certificates: Certificates) -> Side:
    """The side with the three listeners."""

    def make(folder: Path) -> BrokerProcess:
        broker = side.make(folder)
        broker.overrides.update(_listeners(broker) | _credentials(certificates))
        return broker

    return dataclasses.replace(side, make=make)


def authorizing(side: Side, name: str) -> Side:
    """Another broker of a secured side, with an authorizer."""

    def make(folder: Path) -> BrokerProcess:
        broker = side.make(folder)
        broker.overrides.update(_AUTHORIZER)
        return broker

    return dataclasses.replace(side, name=f"{side.name}-{name}", make=make)


def port_of(broker: BrokerProcess, listener: str) -> int:
    addresses = dict(each.split("://") for each in broker.overrides["listeners"].split(","))
    return int(addresses[listener].rpartition(":")[2])


def _listeners(broker: BrokerProcess) -> dict[str, str]:
    ports = {CLEAR: broker.port, TLS: free_port(), SASL: free_port()}
    protocols = dict(_PROTOCOLS)
    advertised = listeners = ",".join(f"{name}://{broker.host}:{port}" for name, port in ports.items())
    if isinstance(broker, ApacheKafka):
        listeners += f",CONTROLLER://{broker.host}:{broker.controller_port}"
        protocols["CONTROLLER"] = "PLAINTEXT"
    return {
        "listeners": listeners,
        "advertised.listeners": advertised,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": CLEAR,
    }


def _credentials(certificates: Certificates) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker),
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.{SASL.lower()}.{MECHANISM.lower()}.sasl.jaas.config": module,
    }
