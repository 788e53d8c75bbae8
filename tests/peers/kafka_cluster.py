"""Apache Kafka 4.3 as a cluster: three nodes by default, each of them broker and controller, on loopback.

    with KafkaCluster(folder) as cluster:
        cluster.bootstrap_servers, cluster.node(1).log_text()
        cluster.kill(2)      # SIGKILL
        cluster.restart(2)
        cluster.stop(3)      # SIGTERM: a controlled shutdown
        cluster.start(3)

Nodes are numbered from 1. Each has log directories `data` and `data-2` in its folder, and a rack of its own.
"""

import signal
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.kafka import LIGHT_JVM, ApacheKafka
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
START_SECONDS = 120.0  # three JVMs start at a time
STOP_SECONDS = 20.0


class KafkaCluster:
    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 3,
        heap: str = "256m",
        overrides: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = LIGHT_JVM,
    ) -> None:
        """`overrides` are settings of all nodes."""
        self.folder = folder
        self._nodes = {
            node_id: ApacheKafka(folder / f"node-{node_id}", heap=heap, jvm_flags=jvm_flags)
            for node_id in range(1, nodes + 1)
        }
        first = self._nodes[1]
        voters = ",".join(f"{number}@{each.host}:{each.controller_port}" for number, each in self._nodes.items())
        for number, each in self._nodes.items():
            each.cluster_id = first.cluster_id
            each.overrides = {
                **_REPLICATED,
                "node.id": str(number),
                "broker.rack": f"rack-{number}",
                "controller.quorum.voters": voters,
                "log.dirs": f"{each.data_dir},{each.folder / 'data-2'}",
                **(overrides or {}),
            }

    # --- addresses ----------------------------------------------------------------------------------------------------

    def node(self, number: int) -> ApacheKafka:
        return self._nodes[number]

    @property
    def numbers(self) -> list[int]:
        return list(self._nodes)

    @property
    def running(self) -> list[int]:
        return [number for number, each in self._nodes.items() if each.running]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(each.bootstrap for each in self._nodes.values())

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(f"{each.host}:{each.controller_port}" for each in self._nodes.values())

    # --- one node -----------------------------------------------------------------------------------------------------

    def kill(self, number: int) -> None:
        """SIGKILL."""
        self._nodes[number].kill()

    def stop(self, number: int) -> None:
        """SIGTERM: its leaderships move to other nodes first."""
        self._nodes[number].stop()

    def start(self, number: int) -> None:
        """Start a node that was stopped or killed, and wait until the others know it again."""
        self._nodes[number].start(START_SECONDS)
        self.wait_for_brokers()

    def restart(self, number: int) -> None:
        """Stop it, unless it was killed or stopped already, and start it on the same folder and ports."""
        self.stop(number)
        self.start(number)

    # --- all nodes ----------------------------------------------------------------------------------------------------

    def start_all(self) -> Self:
        """Returns once every node knows every other as a broker."""
        with ThreadPoolExecutor(2) as pool:  # formatting runs a JVM for each node
            list(pool.map(ApacheKafka.prepare, self._nodes.values()))
        for each in self._nodes.values():
            each.launch()
        for each in self._nodes.values():
            each.wait_ready(START_SECONDS)
        self.wait_for_brokers()
        return self

    def wait_for_brokers(self) -> None:
        """Wait until every running node knows every running node as a broker."""
        running = set(self.running)
        for number in running:
            wait_until(
                lambda number=number: running <= set(self._known_brokers(number)),  # type: ignore[misc]
                f"node {number} knows the brokers {sorted(running)}",
                seconds=START_SECONDS,
            )

    def stop_all(self) -> None:
        """All at once, so that the last ones need not wait for a quorum. Safe to call twice."""
        for each in self._nodes.values():
            if each.running:
                each.signal(signal.SIGTERM)
        for each in self._nodes.values():
            each.stop(STOP_SECONDS)

    def kill_all(self) -> None:
        for each in self._nodes.values():
            each.kill()

    def _known_brokers(self, number: int) -> Iterable[int]:
        node = self._nodes[number]
        with RawClient(node.port, node.host) as client:
            return [broker.node_id for broker in client.metadata().brokers]

    def __enter__(self) -> Self:
        try:
            return self.start_all()
        except BaseException:
            self.kill_all()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill_all()  # nothing of the folder is used again, and a clean stop takes seconds
