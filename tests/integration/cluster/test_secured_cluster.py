"""Brokers that reach each other by SASL_SSL only: certificates of their own, a SCRAM user made by formatting."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.records import Record, build_batch
from kaspar.security.certificates import CertificateAuthority
from kaspar.tools import storage
from kaspar.zookeeper.config import write_config
from kaspar.zookeeper.server import ZooKeeperServer
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.process import write_properties
from tests.peers.raw_client import RawClient
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
            "node.id": str(node),
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_SSL",
            "inter.broker.listener.name": "INSIDE",
            "listener.name.inside.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "listener.name.inside.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram."
            f'ScramLoginModule required username="broker" password="{password}";',
            "default.replication.factor": "2",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "2",
            "offsets.topic.num.partitions": "1",
        }


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[int]:
    port = free_port()
    server = ZooKeeperServer(write_config(tmp_path / "zookeeper", client_port=port), heap="128m")
    with contextlib.ExitStack() as stack:
        server.start(ends_with_caller=True)
        stack.callback(server.stop)
        server.wait_serving()
        yield port


def in_sync(broker: KasparProcess, topic: str) -> set[int]:
    with RawClient(broker.port) as client:
        (found,) = client.metadata(topic).topics
        return set(found.partitions[0].isr_nodes) if found.partitions else set()


def test_brokers_replicate_over_sasl_ssl(tmp_path: Path, zookeeper: int) -> None:
    authority = CertificateAuthority.new()
    nodes = {node: Node(tmp_path / f"broker-{node}", node, zookeeper, authority, "broker-secret") for node in (1, 2)}
    settings = tmp_path / "format.properties"
    write_properties(
        settings,
        {"node.id": "1", "log.dirs": str(nodes[1].data_dir), "zookeeper.connect": f"127.0.0.1:{zookeeper}"},
    )
    credential = f"{MECHANISM}=[name=broker,password=broker-secret]"
    assert storage.main(["format", "-c", str(settings), "--add-scram", credential]) == 0
    with nodes[1], nodes[2]:
        wait_until(lambda: brokers_known(nodes[2]) == 2, "the brokers know each other")
        with Client(nodes[1].bootstrap) as client:
            topic = CreatableTopic(
                name="replicated", num_partitions=1, replication_factor=2, assignments=(), configs=()
            )
            created = client.request(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), CreateTopicsResponse)
            assert [each.error_code for each in created.topics] == [ErrorCode.NONE]
        wait_until(lambda: in_sync(nodes[2], "replicated") == {1, 2}, "both are in sync")
        with Client(nodes[2].bootstrap) as client:
            client.produce("replicated", 0, bytes(build_batch([Record(0, None, b"one")])), acks=-1)
        assert "failed to authenticate" not in nodes[1].log_text() + nodes[2].log_text()
        assert "broker-secret" not in nodes[1].log_text() + nodes[2].log_text()


def brokers_known(node: KasparProcess) -> int:
    with RawClient(node.port) as client:
        return len(client.metadata("none").brokers)
