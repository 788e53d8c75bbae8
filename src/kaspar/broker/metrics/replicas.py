"""The metrics of replicas: those on this broker, how far they are in sync, and the copying between brokers."""

from collections.abc import Callable
from typing import Final

from kaspar.base.exposition import labels
from kaspar.broker.metrics.families import BrokerFamily, many, one
from kaspar.broker.metrics.view import PartitionView, ReplicationView

_PARTITION: Final = ("topic", "partition")

# -- replicas --------------------------------------------------------------------------------------------------------


def _is_under_replicated(partition: PartitionView) -> bool:
    return partition.is_leader and partition.in_sync_replica_count < partition.replica_count


def _is_under_min_isr(partition: PartitionView) -> bool:
    return partition.is_leader and partition.in_sync_replica_count < _effective_min_isr(partition)


def _is_at_min_isr(partition: PartitionView) -> bool:
    return partition.is_leader and partition.in_sync_replica_count == _effective_min_isr(partition)


def _effective_min_isr(partition: PartitionView) -> int:
    """A partition with fewer replicas than min.insync.replicas needs all of them in sync."""
    return min(partition.min_insync_replicas, partition.replica_count)


def _replica_count_family(kafka_name: str, text: str, counts: Callable[[PartitionView], bool]) -> BrokerFamily:
    return one(
        f"kafka.server:type=ReplicaManager,name={kafka_name}",
        text,
        lambda scrape: sum(counts(partition) for _, partition in scrape.partitions),
    )


def _partition_family(kafka_name: str, text: str, read: Callable[[PartitionView], int]) -> BrokerFamily:
    return many(
        f"kafka.cluster:type=Partition,name={kafka_name},topic=*,partition=*",
        text,
        _PARTITION,
        lambda scrape: ((label_text, read(partition)) for label_text, partition in scrape.partitions),
    )


REPLICAS: Final = (
    one(
        "kafka.server:type=ReplicaManager,name=PartitionCount",
        "Partitions that have a replica on this broker.",
        lambda scrape: len(scrape.partitions),
    ),
    _replica_count_family("LeaderCount", "Partitions that this broker leads.", lambda partition: partition.is_leader),
    _replica_count_family(
        "UnderReplicatedPartitions",
        "Partitions led by this broker with a replica that is not in sync. Always 0 with one broker: the only replica "
        "of a partition is its leader.",
        _is_under_replicated,
    ),
    _replica_count_family(
        "UnderMinIsrPartitionCount",
        "Partitions led by this broker with fewer replicas in sync than min.insync.replicas: acks=all is rejected. "
        "Always 0 with one broker: for a partition with fewer replicas, all of them suffice.",
        _is_under_min_isr,
    ),
    _replica_count_family(
        "AtMinIsrPartitionCount",
        "Partitions led by this broker with exactly min.insync.replicas in sync.",
        _is_at_min_isr,
    ),
    _replica_count_family(
        "ReassigningPartitions",
        "Partitions led by this broker whose replicas are being moved to other brokers. Always 0 with one broker.",
        lambda partition: partition.is_leader and partition.is_reassigning,
    ),
    one(
        "kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
        "Replicas of this broker that are on failed log directories.",
        lambda scrape: scrape.broker.offline_replica_count(),
    ),
    one(
        "kafka.server:type=ReplicaManager,name=ProducerIdCount",
        "Producer ids that the replicas of this broker know, each counted once for each replica.",
        lambda scrape: sum(log.producer_id_count for _, log in scrape.logs),
    ),
    _partition_family(
        "ReplicasCount",
        "Replicas of the partition; 0 where this broker does not lead it.",
        lambda partition: partition.replica_count if partition.is_leader else 0,
    ),
    _partition_family(
        "InSyncReplicasCount",
        "Replicas in sync; 0 where this broker does not lead the partition.",
        lambda partition: partition.in_sync_replica_count if partition.is_leader else 0,
    ),
    _partition_family(
        "UnderReplicated",
        "1 where this broker leads the partition and a replica is not in sync. Always 0 with one broker.",
        lambda partition: int(_is_under_replicated(partition)),
    ),
    _partition_family(
        "UnderMinIsr",
        "1 where this broker leads the partition and fewer than min.insync.replicas are in sync. Always 0 with one "
        "broker.",
        lambda partition: int(_is_under_min_isr(partition)),
    ),
    _partition_family(
        "AtMinIsr",
        "1 where this broker leads the partition and exactly min.insync.replicas are in sync.",
        lambda partition: int(_is_at_min_isr(partition)),
    ),
    _partition_family(
        "LastStableOffsetLag",
        "Committed records that read_committed consumers cannot read yet, because of open transactions.",
        lambda partition: partition.last_stable_offset_lag,
    ),
)

# -- replication -----------------------------------------------------------------------------------------------------


def _replication_family(mbean: str, text: str, read: Callable[[ReplicationView], float]) -> BrokerFamily:
    return one(mbean, f"{text} Always 0 with one broker.", lambda scrape: read(scrape.replication))


def _copying_family(mbean: str, client_id: str, text: str, read: Callable[[ReplicationView], float]) -> BrokerFamily:
    """A metric of the fetchers with this client id, which copy partitions."""
    label_text = labels(clientId=client_id)
    return many(
        f"{mbean},clientId={client_id}", text, ("clientId",), lambda scrape: [(label_text, read(scrape.replication))]
    )


REPLICATION: Final = (
    _replication_family(
        "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec",
        "How often replicas have left the in-sync replicas of partitions led by this broker, because they fell behind.",
        lambda replication: replication.isr_shrinks,
    ),
    _replication_family(
        "kafka.server:type=ReplicaManager,name=IsrExpandsPerSec",
        "How often replicas have joined the in-sync replicas of partitions led by this broker.",
        lambda replication: replication.isr_expands,
    ),
    _replication_family(
        "kafka.server:type=ReplicaManager,name=FailedIsrUpdatesPerSec",
        "Changes of in-sync replicas that the controller rejected.",
        lambda replication: replication.failed_isr_updates,
    ),
    _replication_family(
        "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesInPerSec",
        "Bytes of record batches copied from leaders.",
        lambda replication: replication.bytes_in,
    ),
    _replication_family(
        "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesOutPerSec",
        "Bytes of record batches sent to followers.",
        lambda replication: replication.bytes_out,
    ),
    _replication_family(
        "kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytesInPerSec",
        "The part of the bytes copied from leaders for replicas that a reassignment adds.",
        lambda replication: replication.reassignment_bytes_in,
    ),
    _replication_family(
        "kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytesOutPerSec",
        "The part of the bytes sent to followers for replicas that a reassignment adds.",
        lambda replication: replication.reassignment_bytes_out,
    ),
    _copying_family(
        "kafka.server:type=ReplicaFetcherManager,name=MaxLag",
        "Replica",
        "The maximum number of committed records that a replica on this broker lacks. Always 0 with one broker.",
        lambda replication: replication.max_lag,
    ),
    _copying_family(
        "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate",
        "Replica",
        "Fetches per second, over the last minute, of the slowest replica fetcher. Always 0 with one broker.",
        lambda replication: replication.min_fetch_rate,
    ),
    _copying_family(
        "kafka.server:type=ReplicaFetcherManager,name=FailedPartitionsCount",
        "Replica",
        "Replicas that are no longer copied after a failure; the broker's log has the reason. Always 0 with one "
        "broker.",
        lambda replication: replication.failed_partition_count,
    ),
    many(
        "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*,topic=*,partition=*",
        "Committed records that a replica on this broker lacks. Always 0 with one broker: it has no samples.",
        ("clientId", "topic", "partition"),
        lambda scrape: (
            (labels(clientId=fetcher, topic=topic, partition=partition), lag)
            for fetcher, (topic, partition), lag in scrape.replication.follower_lags
        ),
    ),
    _copying_family(
        "kafka.server:type=ReplicaAlterLogDirsManager,name=MaxLag",
        "ReplicaAlterLogDirs",
        "The maximum number of records still missing from a replica that is moving to another log directory.",
        lambda replication: replication.max_move_lag,
    ),
)
