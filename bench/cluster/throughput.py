"""Records with acks=all to partitions with three replicas: their rate, and the time until each is acknowledged."""

from collections.abc import Mapping

from bench.bench import Load
from bench.cases.throughput import Shape
from bench.cluster.bench import ClusterBench, ClusterCase
from bench.cluster.clusters import HOST
from bench.cluster.sides import ClusterSide
from bench.cluster.topics import ClusterTopics
from bench.rows import Better, Row

_RATE_GOAL = 1.5
_LATENCY_GOAL = 0.7
_WARM_UP_SHARE = 0.3
_RECORDS = {1000: 600_000, 100: 4_000_000}


class ReplicatedProduce(ClusterCase):
    """Through librdkafka."""

    def __init__(self, record_bytes: int, partitions: int) -> None:
        self._shape = Shape(record_bytes, partitions, "none")
        name = f"replicated_{self._shape.name}"
        section = "Three replicas, acks=all, through librdkafka"
        rows = (
            Row(name, self._shape.title, section, "MB/s", Better.MORE, _RATE_GOAL),
            Row(f"{name}_cpu", f"{self._shape.title}: CPU of all brokers", section, "s/GB", Better.LESS),
        )
        super().__init__(name, rows)

    def warm_up(self, bench: ClusterBench, side: ClusterSide) -> None:
        self._produce(bench, side, _WARM_UP_SHARE)

    def measure(self, bench: ClusterBench, side: ClusterSide) -> Mapping[str, float]:
        load = self._produce(bench, side, 1.0)
        return {
            self.name: load["bytes"] / load["seconds"] / 1e6,
            f"{self.name}_cpu": load.broker_cpu_seconds / load["bytes"] * 1e9,
        }

    def _produce(self, bench: ClusterBench, side: ClusterSide, share: float) -> Load:
        cluster, shape = bench.warm_cluster(side), self._shape
        records = bench.scaled(int(_RECORDS[shape.record_bytes] * share))
        with ClusterTopics(cluster).temporary(shape.partitions) as topic:
            arguments = (cluster.bootstrap, topic, shape.partitions, records, shape.record_bytes, "all", "none")
            return bench.run_load(cluster, bench.tools.client, "produce", *arguments)


class ReplicatedLatency(ClusterCase):
    """One-record requests to one leader, due at fixed times: the time from when each is due until its response."""

    _WARM_UP_SECONDS = 5.0
    _SECONDS = 10.0

    def __init__(self, rate: int, connections: int) -> None:
        self._rate = rate
        self._connections = connections
        name = f"replicated_latency_{rate}_c{connections}"
        of = "1 connection" if connections == 1 else f"{connections} connections"
        rows = tuple(
            Row(
                f"{name}_{part}",
                f"latency at {rate:,}/s, {of}: {part}",
                "Latency of one-record requests, three replicas, acks=all",
                "ms",
                Better.LESS,
                goal,
            )
            for part, goal in (("p50", None), ("p99", _LATENCY_GOAL))
        )
        super().__init__(name, rows)

    def warm_up(self, bench: ClusterBench, side: ClusterSide) -> None:
        self._send(bench, side, self._WARM_UP_SECONDS)

    def measure(self, bench: ClusterBench, side: ClusterSide) -> Mapping[str, float]:
        load = self._send(bench, side, max(3.0, self._SECONDS * bench.scale))
        return {f"{self.name}_p50": load["p50_us"] / 1000, f"{self.name}_p99": load["p99_us"] / 1000}

    def _send(self, bench: ClusterBench, side: ClusterSide, seconds: float) -> Load:
        cluster = bench.warm_cluster(side)
        topics = ClusterTopics(cluster)
        with topics.temporary(1) as topic:
            where = (HOST, cluster.port(topics.leaders(topic)[0]), topic, 1)
            how = (self._connections, 100, "-1", seconds, self._rate)
            return bench.run_load(cluster, bench.tools.requests, "open", *where, *how)
