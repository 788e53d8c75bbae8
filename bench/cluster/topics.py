"""Replicated topics of a cluster under test: creating them, waiting for them, and removing them with their files."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench import programs
from bench.cluster.clusters import BROKERS, HOST, BrokerCluster
from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.metadata import MetadataResponsePartition
from tests.peers.raw_client import RawClient
from tests.peers.wire import leads

REPLICAS = 3
TIMEOUT_SECONDS = 120.0
_POLL_SECONDS = 0.02
_numbers = itertools.count(1)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise programs.LoadError(f"not within {TIMEOUT_SECONDS:.0f} s: {what}")
        time.sleep(_POLL_SECONDS)


def create_topics(client: RawClient, names: Sequence[str], partitions: int) -> None:
    """Create the topics with one request. Raises LoadError with the first error."""
    topics = tuple(
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=REPLICAS, assignments=(), configs=())
        for name in names
    )
    response = client.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    for topic in response.topics:
        if topic.error_code != ErrorCode.NONE:
            raise programs.LoadError(f"{topic.name} was not created: {topic.error_message or topic.error_code}")


class ClusterTopics:
    def __init__(self, cluster: BrokerCluster) -> None:
        self._cluster = cluster

    def create(self, partitions: int) -> str:
        """Create a topic. Returns when its replicas are in sync, every broker knows it, and leaders accept requests."""
        name = f"bench{next(_numbers)}"
        with self._cluster.client(BROKERS[0]) as client:
            create_topics(client, [name], partitions)
        self.wait_in_sync(name, partitions)
        wait_for(lambda: self._are_led(name), f"the partitions of {name} are led")
        return name

    def wait_in_sync(self, name: str, partitions: int) -> None:
        for broker_id in BROKERS:
            wait_for(
                lambda broker_id=broker_id: self._is_in_sync(broker_id, name, partitions),  # type: ignore[misc]
                f"broker {broker_id} knows that all replicas of {name} are in sync",
            )

    def leaders(self, name: str, broker_id: int = BROKERS[0]) -> dict[int, int]:
        """The leader of each partition."""
        return {each.partition_index: each.leader_id for each in self._partitions(broker_id, name)}

    def _is_in_sync(self, broker_id: int, name: str, partitions: int) -> bool:
        found = self._partitions(broker_id, name)
        return len(found) == partitions and all(
            each.leader_id in BROKERS and len(each.isr_nodes) == REPLICAS for each in found
        )

    def _are_led(self, name: str) -> bool:
        leaders = self.leaders(name)
        return all(leads(HOST, self._cluster.port(leader), name, [each]) for each, leader in leaders.items())

    def _partitions(self, broker_id: int, name: str) -> Sequence[MetadataResponsePartition]:
        with self._cluster.client(broker_id) as client:
            return client.metadata(name).topics[0].partitions

    def delete(self, name: str) -> None:
        """Delete a topic. Returns when its files are removed, so that this work does not affect later measurements."""
        with self._cluster.client(BROKERS[0]) as client:
            code = client.delete_topic(name)
        if code != ErrorCode.NONE:
            raise programs.LoadError(f"{name} was not deleted: {ErrorCode(code).name}")
        folders = [self._cluster.data_dir(broker_id) for broker_id in BROKERS]
        wait_for(
            lambda: not any(any(folder.glob(f"{name}-*")) for folder in folders), f"the files of {name} are removed"
        )

    @contextmanager
    def temporary(self, partitions: int) -> Iterator[str]:
        name = self.create(partitions)
        yield name
        self.delete(name)
