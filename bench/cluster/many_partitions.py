"""A thousand topics with ten thousand partitions, three replicas each: creation, memory, and start."""

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bench import programs
from bench.cluster.bench import ClusterBench, ClusterCase, resident_megabytes
from bench.cluster.clusters import BROKERS, BrokerCluster
from bench.cluster.sides import ClusterSide
from bench.cluster.topics import TIMEOUT_SECONDS, create_topics
from bench.rows import Better, Row
from kaspar.base.errors import ErrorCode
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.records import Record, build_batch
from tests.peers.raw_client import NAMES_TOPICS, request_frame

_TOPICS = 1000
_PARTITIONS_OF_EACH = 10
_TOPICS_OF_A_REQUEST = 50  # Kafka's controller refuses requests that cause more than 10,000 records
_GOAL = 0.7
_RETRY_SECONDS = 0.05
_SETTLE_SECONDS = 4.0


class _Slot(NamedTuple):
    topic: str
    partition: int


class ManyPartitions(ClusterCase):
    def __init__(self) -> None:
        section = "1,000 topics with 10,000 partitions, three replicas"
        rows = (
            Row("partitions_create", "create them, until each acknowledged a record", section, "s", Better.LESS, _GOAL),
            Row("partitions_memory", "resident memory of all processes", section, "MB", Better.LESS, _GOAL),
            Row("partitions_stop", "clean stop of the cluster", section, "s", Better.LESS),
            Row("partitions_start", "start, until each acknowledged a record", section, "s", Better.LESS, _GOAL),
        )
        super().__init__("partitions", rows)

    def warm_up(self, bench: ClusterBench, side: ClusterSide) -> None:
        """Does nothing, because every round has a new cluster."""

    def measure(self, bench: ClusterBench, side: ClusterSide) -> Mapping[str, float]:
        names = [f"many-{number}" for number in range(bench.scaled(_TOPICS))]
        with bench.new_cluster(side, "partitions") as cluster:
            began = time.monotonic()
            with cluster.client(BROKERS[0]) as client:
                for first in range(0, len(names), _TOPICS_OF_A_REQUEST):
                    create_topics(client, names[first : first + _TOPICS_OF_A_REQUEST], _PARTITIONS_OF_EACH)
            acknowledge_all(cluster, names, _PARTITIONS_OF_EACH)
            created = time.monotonic()
            time.sleep(_SETTLE_SECONDS)
            memory = resident_megabytes(cluster)
            stopping = time.monotonic()
            cluster.stop()
            stopped = time.monotonic()
            cluster.start()
            acknowledge_all(cluster, names, _PARTITIONS_OF_EACH)
            started = time.monotonic()
        return {
            "partitions_create": created - began,
            "partitions_memory": memory,
            "partitions_stop": stopped - stopping,
            "partitions_start": started - stopped,
        }


def acknowledge_all(cluster: BrokerCluster, topics: Iterable[str], partitions: int) -> None:
    """Return when every partition has acknowledged a record with acks=all."""
    missing = {_Slot(topic, partition) for topic in topics for partition in range(partitions)}
    limit = time.monotonic() + TIMEOUT_SECONDS
    while True:
        missing -= _acknowledged(cluster, missing)
        if not missing:
            return
        if time.monotonic() > limit:
            raise programs.LoadError(f"{len(missing)} partitions did not acknowledge a record, {min(missing)} first")
        time.sleep(_RETRY_SECONDS)


def _acknowledged(cluster: BrokerCluster, wanted: set[_Slot]) -> set[_Slot]:
    """Send a record to each of these partitions, to all leaders at once. Returns those that acknowledged it."""
    with cluster.client(BROKERS[0]) as client:
        leaders = {
            _Slot(topic.name or "", each.partition_index): each.leader_id
            for topic in client.metadata().topics
            for each in topic.partitions
        }
    acknowledged: set[_Slot] = set()
    clients = {leader: cluster.client(leader) for leader in set(leaders.values()) & set(BROKERS)}
    try:
        for leader, client in clients.items():
            slots = [slot for slot in wanted if leaders.get(slot) == leader]
            client.send(request_frame(_produce_request(slots), NAMES_TOPICS))
        for client in clients.values():
            response = client.response_to(ApiKey.PRODUCE, NAMES_TOPICS, 1)
            assert isinstance(response, ProduceResponse)
            acknowledged |= {
                _Slot(topic.name, each.index)
                for topic in response.responses
                for each in topic.partition_responses
                if each.error_code == ErrorCode.NONE
            }
    finally:
        for client in clients.values():
            client.close()
    return acknowledged


def _produce_request(slots: Iterable[_Slot]) -> ProduceRequest:
    batch = bytes(build_batch([Record(time.time_ns() // 1_000_000, None, b"x" * 100)]))
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, partition in slots:
        topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=batch))
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=tuple(TopicProduceData(name=name, partition_data=tuple(of)) for name, of in topics.items()),
    )


class IdleCluster(ClusterCase):
    """A new cluster that has received a record in a few partitions and is then left alone."""

    def __init__(self) -> None:
        section = "An idle cluster"
        rows = (
            Row("idle_memory", "resident memory of all processes", section, "MB", Better.LESS, _GOAL),
            Row("idle_start", "start on new folders, until three partitions acknowledged", section, "s", Better.LESS),
        )
        super().__init__("idle", rows)

    def warm_up(self, bench: ClusterBench, side: ClusterSide) -> None:
        """Does nothing, because every round has a new cluster."""

    def measure(self, bench: ClusterBench, side: ClusterSide) -> Mapping[str, float]:
        began = time.monotonic()
        with bench.new_cluster(side, "idle") as cluster:
            with cluster.client(BROKERS[0]) as client:
                create_topics(client, ["first"], len(BROKERS))
            acknowledge_all(cluster, ["first"], len(BROKERS))
            seconds = time.monotonic() - began
            time.sleep(_SETTLE_SECONDS)
            return {"idle_memory": resident_megabytes(cluster), "idle_start": seconds}
