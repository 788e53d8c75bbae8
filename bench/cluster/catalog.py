"""All cases of clusters in the order in which they run: first those with new clusters, last those that kill brokers."""

from bench.cluster.bench import ClusterCase
from bench.cluster.many_partitions import IdleCluster, ManyPartitions
from bench.cluster.outages import ControlledShutdown, ControllerKilled, LeaderKilled
from bench.cluster.throughput import ReplicatedLatency, ReplicatedProduce


def all_cases() -> list[ClusterCase]:
    return [
        IdleCluster(),
        ManyPartitions(),
        *(ReplicatedProduce(record_bytes, partitions) for record_bytes in (1000, 100) for partitions in (1, 6)),
        *(ReplicatedLatency(1000, connections) for connections in (1, 10)),
        ControlledShutdown(),
        LeaderKilled(),
        ControllerKilled(),
    ]
