"""Brokers that reach each other by GSSAPI only, each with the key of its own principal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster.pair import SETTINGS, check_replication
from tests.peers.kaspar import KasparProcess
from tests.peers.kerberos import FIRST_RUN_SECONDS, Kdc, by_keytab, running_kdc
from tests.peers.wire import free_port

pytestmark = pytest.mark.timeout(FIRST_RUN_SECONDS)

HOSTS = {1: "localhost", 2: "127.0.0.1"}
"""As the brokers call each other: the names in their principals."""


class Node(KasparProcess):
    """Clients use PLAINTEXT; brokers use INSIDE."""

    def __init__(self, folder: Path, node: int, zookeeper: int, kdc: Kdc) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        inside, principal = free_port(), f"kafka/{HOSTS[node]}"
        self.overrides |= {
            **SETTINGS,
            "node.id": str(node),
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},INSIDE://127.0.0.1:{inside}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port},INSIDE://{HOSTS[node]}:{inside}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.inside.gssapi.sasl.jaas.config": by_keytab(kdc.add(principal), principal),
            # Only brokers may do what brokers do: their principals have the short name `kafka`.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:kafka;User:ANONYMOUS",
        }


@pytest.fixture
def kdc(tmp_path: Path) -> Iterator[Kdc]:
    with running_kdc(tmp_path / "kdc") as kdc:
        yield kdc


def test_brokers_replicate_over_gssapi(tmp_path: Path, zookeeper_port: int, kdc: Kdc) -> None:
    nodes = {node: Node(tmp_path / f"broker-{node}", node, zookeeper_port, kdc) for node in HOSTS}
    with nodes[1], nodes[2]:
        check_replication(nodes)
