"""Three brokers of Kaspar with their ZooKeeper, and three of Apache Kafka, with a common interface."""

import abc
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench import programs
from bench.sides import KAFKA_HEAP
from kaspar.base.errors import KasparError
from kaspar.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from kaspar.testing.cluster import Cluster
from tests.peers.kafka import KAFKA_JVM
from tests.peers.kafka_cluster import KafkaCluster
from tests.peers.process import BrokerStartError
from tests.peers.raw_client import RawClient

HOST = "127.0.0.1"
BROKERS = (1, 2, 3)
_END_SECONDS = 60.0


class BrokerCluster(abc.ABC):
    """Brokers 1, 2 and 3 on one machine. The cluster can be restarted with its data after `stop`, not after `close`."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start the cluster. Returns when every broker sees all brokers."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop all brokers cleanly. The data remains."""

    @abc.abstractmethod
    def close(self) -> None:
        """Kill all brokers and remove the data. May be called twice."""

    @abc.abstractmethod
    def port(self, broker_id: int) -> int: ...

    @abc.abstractmethod
    def pid(self, broker_id: int) -> int: ...

    @abc.abstractmethod
    def controller_id(self) -> int: ...

    @abc.abstractmethod
    def data_dir(self, broker_id: int) -> Path: ...

    @abc.abstractmethod
    def restart_ended(self, broker_id: int) -> None:
        """Start a broker that a load program has stopped or killed. Returns when the others see it again."""

    @property
    def processes(self) -> list[int]:
        """The ids of all processes of this cluster."""
        return [self.pid(broker_id) for broker_id in BROKERS]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{self.port(broker_id)}" for broker_id in BROKERS)

    def client(self, broker_id: int, *, timeout: float = 60.0) -> RawClient:
        return RawClient(self.port(broker_id), timeout=timeout)


class OurCluster(BrokerCluster):
    """A cluster of Kaspar. With `source`, it runs the code of that checkout instead of this one."""

    def __init__(self, folder: Path, settings: Mapping[str, str], source: Path | None = None) -> None:
        self._folder = folder
        self._environment = {} if source is None else {"PYTHONPATH": str(source / "src")}
        folder.mkdir(parents=True, exist_ok=True)
        self._cluster = Cluster(brokers=len(BROKERS), data_dir=folder, overrides=settings)

    def start(self) -> None:
        with _environment(self._environment), _as_load_errors():
            self._cluster.start()

    def stop(self) -> None:
        with _as_load_errors():
            self._cluster.stop()

    def close(self) -> None:
        try:
            with _as_load_errors():
                self._cluster.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def port(self, broker_id: int) -> int:
        return self._cluster.port(broker_id)

    def pid(self, broker_id: int) -> int:
        return self._cluster.pid(broker_id)

    @property
    def processes(self) -> list[int]:
        return [*super().processes, self._cluster.zookeeper_pid()]

    def controller_id(self) -> int:
        with _as_load_errors():
            return self._cluster.controller_id()

    def data_dir(self, broker_id: int) -> Path:
        return self._cluster.broker_data(broker_id)

    def restart_ended(self, broker_id: int) -> None:
        with _environment(self._environment), _as_load_errors():
            self._cluster.start_broker(broker_id)
            self._cluster.wait_complete()


class ApacheKafkaCluster(BrokerCluster):
    """Three nodes, each of them both broker and controller (KRaft)."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._cluster = KafkaCluster(folder, nodes=len(BROKERS), heap=KAFKA_HEAP, jvm_flags=KAFKA_JVM)
        for broker_id in BROKERS:
            node = self._cluster.node(broker_id)
            node.overrides |= {**settings, "log.dirs": str(node.data_dir)}

    def start(self) -> None:
        with _as_load_errors():
            self._cluster.start_all()

    def stop(self) -> None:
        self._cluster.stop_all()

    def close(self) -> None:
        self._cluster.kill_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    def port(self, broker_id: int) -> int:
        return self._cluster.node(broker_id).port

    def pid(self, broker_id: int) -> int:
        return self._cluster.node(broker_id).pid

    def controller_id(self) -> int:
        """The leader of the quorum, because metadata responses name any broker as the controller."""
        asked = RequestTopicData(topic_name="__cluster_metadata", partitions=(RequestPartitionData(partition_index=0),))
        with self.client(BROKERS[0]) as client:
            response = client.call(DescribeQuorumRequest(topics=(asked,)), DescribeQuorumResponse)
        return response.topics[0].partitions[0].leader_id

    def data_dir(self, broker_id: int) -> Path:
        return self._cluster.node(broker_id).data_dir

    def restart_ended(self, broker_id: int) -> None:
        with _as_load_errors():
            self._cluster.node(broker_id).wait(_END_SECONDS)
            self._cluster.start(broker_id)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment of processes that are started in this context."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _as_load_errors() -> Iterator[None]:
    """Turn failures to start or stop a cluster into failures of the case, so that the benchmark continues."""
    try:
        yield
    except (KasparError, BrokerStartError, AssertionError) as problem:
        raise programs.LoadError(str(problem)) from problem
