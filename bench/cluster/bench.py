"""The context of every case of clusters: the load programs, warm clusters, new clusters, and the amount of load."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import meters, programs
from bench.bench import Load
from bench.cases import CaseOf
from bench.cluster.clusters import BrokerCluster
from bench.cluster.sides import ClusterSide
from bench.cluster.topics import ClusterTopics

_WARM_UP_BYTES = 300_000_000
_WARM_UP_PARTITIONS = 6


@dataclass(slots=True)
class ClusterBench:
    tools: programs.Programs
    folder: Path  # holds the data of all brokers
    scale: float  # 1.0 is the full load
    patience: int  # the maximum of extra tries for a measurement that other processes disturbed
    others_shares: list[float] = field(default_factory=list)  # for each load, the share of the machine used by others
    _warm: dict[str, BrokerCluster] = field(default_factory=dict)

    def scaled(self, amount: int) -> int:
        return max(1, int(amount * self.scale))

    def warm_cluster(self, side: ClusterSide) -> BrokerCluster:
        """The side's long-running cluster. It is started on first use, and warmed up with load of every kind."""
        if side.name not in self._warm:
            cluster = side.make(self.folder / f"{side.name}-warm")
            self._warm[side.name] = cluster
            cluster.start()
            print(f"    {side.name} runs as processes {cluster.processes}; warming up", flush=True)
            self._warm_up(cluster)
        return self._warm[side.name]

    def drop_warm_cluster(self, side: ClusterSide) -> None:
        """Drop a cluster that a failed case may have left without a broker. The next case gets a new one."""
        if side.name in self._warm:
            self._warm.pop(side.name).close()

    def _warm_up(self, cluster: BrokerCluster) -> None:
        for size in (1000, 100):
            with ClusterTopics(cluster).temporary(_WARM_UP_PARTITIONS) as topic:
                load = (cluster.bootstrap, topic, _WARM_UP_PARTITIONS, _WARM_UP_BYTES // size, size, "all", "none")
                programs.run(self.tools.client, "produce", *load)

    @contextmanager
    def new_cluster(self, side: ClusterSide, name: str) -> Iterator[BrokerCluster]:
        """A running cluster without topics."""
        cluster = side.make(self.folder / f"{side.name}-{name}-{time.monotonic_ns()}")
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.close()

    def run_load(self, cluster: BrokerCluster, program: Path, *arguments: object) -> Load:
        """Run a load program, and measure what the cluster used during that time."""
        machine, before = meters.MachineUse.now(), _cpu_seconds(cluster)
        measured = programs.run(program, *arguments)
        used = _cpu_seconds(cluster) - before
        self.others_shares.append(meters.MachineUse.now().others_share_since(machine, used))
        return Load(measured, used)

    def close(self) -> None:
        for cluster in self._warm.values():
            cluster.close()


class ClusterCase(CaseOf[ClusterBench, ClusterSide]):
    """A case of clusters."""


def resident_megabytes(cluster: BrokerCluster) -> float:
    """The resident memory of all processes of the cluster."""
    return sum(map(meters.resident_bytes, cluster.processes)) / 1e6


def _cpu_seconds(cluster: BrokerCluster) -> float:
    return sum(map(meters.cpu_seconds, cluster.processes))
