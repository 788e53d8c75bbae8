"""Two brokers that reach each other by a listener of their own, INSIDE; clients use PLAINTEXT."""

from collections.abc import Mapping

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.records import Record, build_batch
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

SETTINGS = {
    "inter.broker.listener.name": "INSIDE",
    "default.replication.factor": "2",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
}


def check_replication(nodes: Mapping[int, KasparProcess]) -> None:
    """A record is committed by both, and no log-in has failed on the way."""
    wait_until(lambda: all(_brokers_known(node) == len(nodes) for node in nodes.values()), "all know all")
    first, last = min(nodes), max(nodes)
    with Client(nodes[first].bootstrap) as client:
        topic = CreatableTopic(name="replicated", num_partitions=1, replication_factor=2, assignments=(), configs=())
        created = client.request(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), CreateTopicsResponse)
        assert [each.error_code for each in created.topics] == [ErrorCode.NONE]
    wait_until(lambda: _in_sync(nodes[last], "replicated") == set(nodes), "all are in sync")
    with Client(nodes[last].bootstrap) as client:
        client.produce("replicated", 0, bytes(build_batch([Record(0, None, b"one")])), acks=-1)
    for node in nodes.values():
        assert "failed to authenticate" not in node.log_text()
        assert "Traceback" not in node.log_text()


def _in_sync(broker: KasparProcess, topic: str) -> set[int]:
    with RawClient(broker.port) as client:
        (found,) = client.metadata(topic).topics
        return set(found.partitions[0].isr_nodes) if found.partitions else set()


def _brokers_known(node: KasparProcess) -> int:
    with RawClient(node.port) as client:
        return len(client.metadata("none").brokers)
