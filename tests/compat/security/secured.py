"""A broker with a listener of every security protocol, and the credentials of its clients.

The same settings start Apache Kafka with `--against kafka`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from kaspar.security.certificates import CertificateAuthority
from tests.peers.against import broker_to_test
from tests.peers.kafka import ApacheKafka
from tests.peers.process import BrokerProcess
from tests.peers.wire import free_port

PASSWORDS = {"alice": "alice-secret", "bob": 'b"o,b=\\;'}
LISTENERS = {"SSL": "SSL", "MUTUAL": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL"}
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PLAIN_USERS = " ".join(
    'user_{}="{}"'.format(user, password.replace("\\", "\\\\").replace('"', '\\"'))
    for user, password in PASSWORDS.items()
)
JAAS = f"org.apache.kafka.common.security.plain.PlainLoginModule required {PLAIN_USERS};"


@dataclass(frozen=True, slots=True)
class Login:
    """How a client gets in at one listener."""

    listener: str
    protocol: str
    mechanism: str = ""
    user: str = "alice"
    password: str = PASSWORDS["alice"]
    ca: str = "ca.pem"
    certificate: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.listener, self.mechanism)))

    @property
    def is_encrypted(self) -> bool:
        return self.protocol.endswith("SSL")


RIGHT = [
    Login("SSL", "SSL"),
    Login("MUTUAL", "SSL", certificate="alice.pem"),
    *(Login(name, name, mechanism) for name in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS),
    Login("SASL_SSL", "SASL_SSL", "SCRAM-SHA-256", "bob", PASSWORDS["bob"]),
]
WRONG = {
    "wrong password by PLAIN": Login("SASL_SSL", "SASL_SSL", "PLAIN", password="wrong"),
    "wrong password by SCRAM": Login("SASL_SSL", "SASL_SSL", "SCRAM-SHA-512", password="wrong"),
    "unknown user": Login("SASL_PLAINTEXT", "SASL_PLAINTEXT", "SCRAM-SHA-256", user="nobody"),
    "no certificate": Login("MUTUAL", "SSL"),
    "a certificate of another authority": Login("MUTUAL", "SSL", certificate="stranger.pem"),
    "an expired certificate": Login("MUTUAL", "SSL", certificate="expired.pem"),
    "the client trusts another authority": Login("SSL", "SSL", ca="other-ca.pem"),
}


@dataclass(slots=True)
class Secured:
    broker: BrokerProcess
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)

    def bootstrap(self, login: Login) -> str:
        return f"localhost:{self.ports[login.listener]}"

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def new_topic(self, name: str) -> str:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for done in admin.create_topics([NewTopic(name, 1, 1)]).values():
            done.result()
        return name

    def librdkafka(self, login: Login) -> dict[str, str]:
        settings = {"bootstrap.servers": self.bootstrap(login), "security.protocol": login.protocol}
        if login.is_encrypted:
            settings["ssl.ca.location"] = self.file(login.ca)
        if login.certificate:
            settings["ssl.certificate.location"] = settings["ssl.key.location"] = self.file(login.certificate)
        if login.mechanism:
            settings["sasl.mechanism"] = login.mechanism
        if login.mechanism not in ("", OAUTHBEARER):
            settings |= {"sasl.username": login.user, "sasl.password": login.password}
        return settings

    def java(self, login: Login) -> dict[str, str]:
        settings = {"security.protocol": login.protocol}
        if login.is_encrypted:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.file(login.ca)}
        if login.certificate:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.file(login.certificate)}
        if login.mechanism:
            module = "plain.PlainLoginModule" if login.mechanism == "PLAIN" else "scram.ScramLoginModule"
            quoted = login.password.replace("\\", "\\\\").replace('"', '\\"')
            settings |= {
                "sasl.mechanism": login.mechanism,
                "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
                f'username="{login.user}" password="{quoted}";',
            }
        return settings


@contextmanager
def secured_broker(
    request: pytest.FixtureRequest,
    folder: Path,
    more: dict[str, str] | None = None,
    more_listeners: dict[str, str] | None = None,
) -> Iterator[Secured]:
    folder.mkdir(parents=True, exist_ok=True)
    _write_certificates(folder)
    broker = broker_to_test(request, folder / "broker", {})
    secure = {**LISTENERS, **(more_listeners or {})}
    ports = {"PLAINTEXT": broker.port, **{name: free_port() for name in secure}}
    listeners = [f"{name}://{broker.host}:{port}" for name, port in ports.items()]
    protocols = {"PLAINTEXT": "PLAINTEXT", **secure}
    own = list(listeners)
    if isinstance(broker, ApacheKafka):
        own.append(f"CONTROLLER://{broker.host}:{broker.controller_port}")
        protocols["CONTROLLER"] = "PLAINTEXT"
    broker.overrides |= {
        "listeners": ",".join(own),
        "advertised.listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": _property(JAAS, broker),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": _property(JAAS, broker),
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
        "num.partitions": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        **(more or {}),
    }
    with broker:
        _add_scram_users(broker.bootstrap)
        yield Secured(broker, folder, ports)


SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def _property(text: str, broker: BrokerProcess) -> str:
    """As it is written to the properties file of Apache Kafka; ours gets overrides as words of its command line."""
    return text.replace("\\", "\\\\") if isinstance(broker, ApacheKafka) else text


def _write_certificates(folder: Path) -> None:
    authority, other = CertificateAuthority.new(), CertificateAuthority.new("Another CA")
    for name, content in {
        "ca.pem": authority.certificate,
        "other-ca.pem": other.certificate,
        "broker.pem": authority.issue("broker", hosts=["localhost", "127.0.0.1"]).key_and_chain,
        "renewed.pem": authority.issue("broker", hosts=["localhost", "127.0.0.1"]).key_and_chain,
        "alice.pem": authority.issue("alice").key_and_chain,
        "expired.pem": authority.issue("alice", days=-1).key_and_chain,
        "stranger.pem": other.issue("alice").key_and_chain,
    }.items():
        (folder / name).write_bytes(content)


def _add_scram_users(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        upsertions: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            for user, password in PASSWORDS.items()
        ]
        for done in admin.alter_user_scram_credentials(upsertions).values():
            done.result()
