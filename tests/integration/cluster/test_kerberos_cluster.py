"""Brokers that reach each other by GSSAPI only, each with the key of its own principal."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.records import Record, build_batch
from kaspar.zookeeper.config import write_config
from kaspar.zookeeper.server import ZooKeeperServer
from tests.peers.kaspar import KasparProcess
from tests.peers.kerberos import FIRST_RUN_SECONDS, Kdc, by_keytab, running_kdc
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient
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
            "node.id": str(node),
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},INSIDE://127.0.0.1:{inside}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port},INSIDE://{HOSTS[node]}:{inside}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.inside.gssapi.sasl.jaas.config": by_keytab(kdc.add(principal), principal),
            # Only brokers may do what brokers do: their principals have the short name `kafka`.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:kafka;User:ANONYMOUS",
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


@pytest.fixture
def kdc(tmp_path: Path) -> Iterator[Kdc]:
    with running_kdc(tmp_path / "kdc") as kdc:
        yield kdc


def in_sync(broker: KasparProcess, topic: str) -> set[int]:
    with RawClient(broker.port) as client:
        (found,) = client.metadata(topic).topics
        return set(found.partitions[0].isr_nodes) if found.partitions else set()


def brokers_known(node: KasparProcess) -> int:
    with RawClient(node.port) as client:
        return len(client.metadata("none").brokers)


def test_brokers_replicate_over_gssapi(tmp_path: Path, zookeeper: int, kdc: Kdc) -> None:
    nodes = {node: Node(tmp_path / f"broker-{node}", node, zookeeper, kdc) for node in HOSTS}
    with nodes[1], nodes[2]:
        wait_until(lambda: all(brokers_known(node) == 2 for node in nodes.values()), "both know both")
        with Client(nodes[2].bootstrap) as client:
            topic = CreatableTopic(
                name="replicated", num_partitions=1, replication_factor=2, assignments=(), configs=()
            )
            created = client.request(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), CreateTopicsResponse)
            assert [each.error_code for each in created.topics] == [ErrorCode.NONE]
        wait_until(lambda: in_sync(nodes[2], "replicated") == {1, 2}, "both are in sync")
        with Client(nodes[2].bootstrap) as client:
            client.produce("replicated", 0, bytes(build_batch([Record(0, None, b"one")])), acks=-1)
        text = nodes[1].log_text() + nodes[2].log_text()
        assert "failed to authenticate" not in text
        assert "Traceback" not in text
