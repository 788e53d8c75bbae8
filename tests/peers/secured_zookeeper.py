"""A ZooKeeper server that knows its clients: one port in the clear, one for TLS with certificates, and users that log
in by SASL on both.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from kaspar.security.certificates import CertificateAuthority
from kaspar.spark.running.java import JavaMissing, find_java
from kaspar.zookeeper import ZooKeeperServer, write_config
from tests.peers.downloads import ToolMissingError
from tests.peers.kafka import LIGHT_JVM
from tests.peers.wire import free_port
from tests.peers.zookeeper import HEAP, SETTINGS

USERS = {"broker": "broker's secret", "other": "other-secret"}
_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def login_module(user: str, password: str | None = None) -> str:
    """What kaspar.zookeeper.sasl.jaas.config takes."""
    known = USERS[user] if password is None else password
    return f'{_MODULE} required username="{user}" password="{known}";'


@dataclass(frozen=True)
class SecuredZooKeeper:
    """The server, and the folder with what its clients need: ca.pem, broker.pem, broker.p12, stranger.pem (of another
    authority) and client.conf, a JAAS file."""

    server: ZooKeeperServer
    folder: Path

    @property
    def plain(self) -> str:
        return f"127.0.0.1:{self.server.config.client_port}"

    @property
    def secure(self) -> str:
        return f"localhost:{self.server.config.secure_client_port}"

    def tls(self, key: str = "broker.pem", trusted: str = "ca.pem") -> dict[str, str]:
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.keystore.location": str(self.folder / key),
            "zookeeper.ssl.truststore.location": str(self.folder / trusted),
        }

    @property
    def kafka_opts(self) -> dict[str, str]:
        """The environment of a broker that logs in as Kafka does."""
        return {"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={self.folder / 'client.conf'}"}


def secured_zookeeper(folder: Path) -> SecuredZooKeeper:
    """Not started yet."""
    try:
        find_java()
    except JavaMissing as missing:
        raise ToolMissingError(str(missing)) from missing
    if importlib.util.find_spec("puresasl") is None:
        raise ToolMissingError("pure-sasl (kaspar[zookeeper]) is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    authority, strangers = CertificateAuthority.new(), CertificateAuthority.new("Strangers")
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "strangers.pem").write_bytes(strangers.certificate)
    (folder / "server.pem").write_bytes(authority.issue("server", hosts=["localhost"]).key_and_chain)
    (folder / "broker.pem").write_bytes(authority.issue("broker").key_and_chain)
    (folder / "broker.p12").write_bytes(authority.issue("broker").pkcs12("store-secret"))
    (folder / "stranger.pem").write_bytes(strangers.issue("broker").key_and_chain)
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    (folder / "server.conf").write_text(f"Server {{ {_MODULE} required {users}; }};\n", encoding="utf-8")
    (folder / "client.conf").write_text(f"Client {{\n  {login_module('broker')}\n}};\n", encoding="utf-8")
    stores = {"ssl.keyStore.location": str(folder / "server.pem"), "ssl.trustStore.location": str(folder / "ca.pem")}
    config = write_config(
        folder / "zookeeper",
        client_port=free_port(),
        more={**SETTINGS, "secureClientPort": str(free_port()), **stores},
    )
    server = ZooKeeperServer(config, heap=HEAP, jvm_flags=LIGHT_JVM, jaas_file=folder / "server.conf")
    return SecuredZooKeeper(server, folder)
