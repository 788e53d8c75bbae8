"""Three of Kaspar's brokers on ZooKeeper, as the subject of tests that are written for one broker.

Topics have three replicas unless they are created with another number. An ERROR that a broker logged is a failure, as
it is for one broker.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kaspar.supervisor.plan import HOST
from kaspar.testing import Cluster
from tests.peers.brokers import Leader
from tests.peers.error_log import ErrorLog
from tests.peers.kaspar import UnexpectedLogError
from tests.peers.raw_client import RawClient
from tests.peers.wire import leads

BROKERS = 3


class KasparCluster:
    def __init__(self, folder: Path, *, overrides: Mapping[str, str] | None = None) -> None:
        self.cluster = Cluster(brokers=BROKERS, data_dir=folder, overrides=overrides)
        self._errors: list[ErrorLog] = []

    def __enter__(self) -> Self:
        self.cluster.__enter__()
        self._errors = [ErrorLog(self.cluster.log_file(broker)) for broker in self.cluster.broker_ids]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cluster.__exit__(kind, error, traceback)
        errors = self.unexpected_errors()
        if errors and error is None:
            raise UnexpectedLogError("the brokers logged:\n" + "\n".join(errors))

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap_servers

    @property
    def running(self) -> bool:
        return all(self.cluster.is_running(broker) for broker in self.cluster.broker_ids)

    def log_text(self) -> str:
        files = [self.cluster.log_file(broker) for broker in self.cluster.broker_ids]
        return "".join(file.read_text(errors="replace") for file in files)

    def unexpected_errors(self) -> list[str]:
        return [entry for log in self._errors for entry in log.unexpected()]

    def lead(self, topic: str, partitions: Sequence[int]) -> bool:
        views = [self._leaders(broker, topic) for broker in self.cluster.broker_ids]
        by_leader: dict[int, list[int]] = defaultdict(list)
        for partition in partitions:
            leaders = {view.get(partition, -1) for view in views}
            if len(leaders) > 1 or -1 in leaders:
                return False
            by_leader[leaders.pop()].append(partition)
        return all(leads(HOST, self.cluster.port(leader), topic, led) for leader, led in by_leader.items())

    def leader(self, topic: str, partition: int) -> Leader:
        leader = self._leaders(self.cluster.broker_ids[0], topic)[partition]
        return Leader(self.cluster.port(leader), self.cluster.broker_data(leader))

    def _leaders(self, broker: int, topic: str) -> dict[int, int]:
        """By partition, as this broker knows them."""
        with RawClient(self.cluster.port(broker)) as client:
            found = client.metadata(topic).topics[0]
        return {each.partition_index: each.leader_id for each in found.partitions}
