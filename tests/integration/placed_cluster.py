"""Three brokers whose internal topics have one replica each: every partition has its own broker, and tests pick ids so
that whatever takes part in a transaction is on another one.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.coordination import partition_for
from kaspar.testing import Cluster
from tests.peers.error_log import ErrorLog
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP, TRANSACTION, find_coordinator

NODES: Final = (1, 2, 3)
INTERNAL_PARTITIONS: Final = 6
GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
SETTINGS: Final = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
}


class PlacedCluster(Cluster):
    def __init__(self, folder: Path, settings: Mapping[str, str] = NO_SETTINGS) -> None:
        super().__init__(brokers=len(NODES), data_dir=folder, overrides={**SETTINGS, **settings})

    @property
    def running(self) -> list[int]:
        return [node for node in NODES if self.is_running(node)]

    @property
    def bootstrap(self) -> str:
        """Of the brokers that are up."""
        return ",".join(f"127.0.0.1:{self.port(node)}" for node in self.running)

    def raw(self, node: int) -> RawClient:
        return RawClient(self.port(node))

    def any(self) -> RawClient:
        return self.raw(self.running[0])

    def client(self) -> Client:
        return Client(self.bootstrap)

    def unexpected_errors(self) -> list[str]:
        return [line for node in NODES for line in ErrorLog(self.log_file(node)).unexpected()]

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition, as any broker reports it."""
        with self.any() as client:
            (found,) = client.metadata(topic).topics
        return {each.partition_index: each.leader_id for each in found.partitions}

    def wait_for_brokers(self, count: int) -> None:
        def all_know() -> bool:
            for node in self.running:
                with self.raw(node) as client:
                    if len(client.metadata("none").brokers) != count:
                        return False
            return True

        wait_until(all_know, f"{count} brokers know each other")

    def create_topic(self, name: str, partitions: int = 3) -> dict[int, int]:
        """A partition on each broker: which broker leads which."""
        with self.any() as client:
            assert client.create_topic(name, partitions=partitions) == ErrorCode.NONE
        leaders = self.leaders(name)
        assert set(leaders.values()) == set(NODES)
        wait_until(lambda: all(self._serves(leader, name, index) for index, leader in leaders.items()), "it is served")
        return {leader: partition for partition, leader in leaders.items()}

    def _serves(self, node: int, topic: str, partition: int) -> bool:
        with self.raw(node) as client:
            return client.offset_at(topic, partition=partition)[0] == ErrorCode.NONE

    def group_at(self, node: int, prefix: str = "group") -> str:
        return self._id_at(node, GROUPS, GROUP, prefix)

    def transactional_id_at(self, node: int, prefix: str = "transfers") -> str:
        return self._id_at(node, TRANSACTIONS, TRANSACTION, prefix)

    def _id_at(self, node: int, internal_topic: str, kind: int, prefix: str) -> str:
        with self.any() as client:
            find_coordinator(client, prefix, kind)
        leaders = self.leaders(internal_topic)
        assert set(leaders.values()) == set(NODES), "they are spread over the brokers"
        ids = (f"{prefix}-{number}" for number in itertools.count())
        return next(each for each in ids if leaders[partition_for(each, INTERNAL_PARTITIONS)] == node)
