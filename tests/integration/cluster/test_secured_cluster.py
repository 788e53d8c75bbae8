"""Brokers that reach each other by SASL_SSL only: certificates of their own, a SCRAM user made by formatting."""

from pathlib import Path

from kaspar.security.certificates import CertificateAuthority
from kaspar.tools import storage
from tests.integration.cluster.pair import SETTINGS, check_replication
from tests.peers.kaspar import KasparProcess
from tests.peers.process import write_properties
from tests.peers.wire import free_port

MECHANISM = "SCRAM-SHA-512"


class Node(KasparProcess):
    """Clients use PLAINTEXT; brokers use INSIDE, and have to show a certificate and to log in."""

    def __init__(self, folder: Path, node: int, zookeeper: int, authority: CertificateAuthority, password: str) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        (folder / "ca.pem").write_bytes(authority.certificate)
        (folder / "broker.pem").write_bytes(authority.issue(f"broker-{node}", hosts=["127.0.0.1"]).key_and_chain)
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},INSIDE://127.0.0.1:{free_port()}"
        self.overrides |= {
            **SETTINGS,
            "node.id": str(node),
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_SSL",
            "listener.name.inside.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "listener.name.inside.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram."
            f'ScramLoginModule required username="broker" password="{password}";',
        }


def test_brokers_replicate_over_sasl_ssl(tmp_path: Path, zookeeper_port: int) -> None:
    authority = CertificateAuthority.new()
    nodes = {
        node: Node(tmp_path / f"broker-{node}", node, zookeeper_port, authority, "broker-secret") for node in (1, 2)
    }
    settings = tmp_path / "format.properties"
    write_properties(
        settings,
        {"node.id": "1", "log.dirs": str(nodes[1].data_dir), "zookeeper.connect": f"127.0.0.1:{zookeeper_port}"},
    )
    credential = f"{MECHANISM}=[name=broker,password=broker-secret]"
    assert storage.main(["format", "-c", str(settings), "--add-scram", credential]) == 0
    with nodes[1], nodes[2]:
        check_replication(nodes)
        assert "broker-secret" not in nodes[1].log_text() + nodes[2].log_text()
