"""Replication traffic and its limits (KIP-73): the replicas that are limited, and how much they may transfer.

Only replicas that their topic lists are limited: on the leader's side those that are not in sync, on the follower's
side those that have not caught up.
"""

from dataclasses import dataclass

from kaspar.base.ids import BrokerId
from kaspar.broker.services import CurrentSettings
from kaspar.replication.partition import Partition
from kaspar.replication.quota import ReplicationQuota, is_listed


@dataclass(slots=True)
class ReplicationTraffic:
    """Record bytes between brokers since the start. Those to replicas that a reassignment adds are in both counts."""

    bytes_in: int = 0
    bytes_out: int = 0
    reassignment_bytes_in: int = 0
    reassignment_bytes_out: int = 0


class ReplicationThrottles:
    def __init__(self, broker_id: BrokerId, settings: CurrentSettings) -> None:
        self.traffic = ReplicationTraffic()
        self.leader = ReplicationQuota()
        self.follower = ReplicationQuota()
        self._broker_id = broker_id
        self._settings = settings
        self.reconfigure()

    def reconfigure(self) -> None:
        """Apply changed settings."""
        config = self._settings.config
        for quota, limit in (
            (self.leader, config.leader_replication_throttled_rate),
            (self.follower, config.follower_replication_throttled_rate),
        ):
            quota.limit_bytes_per_s = limit
            quota.window_count = config.replication_quota_window_num
            quota.window_ms = config.replication_quota_window_size_seconds * 1000

    # -- what this broker leads ----------------------------------------------------------------------------------------

    def counts_as_leader(self, partition: Partition) -> bool:
        listed = partition.log.config.leader_replication_throttled_replicas
        return bool(listed) and is_listed(listed, partition.topic_partition.partition, self._broker_id)

    def holds_back(self, partition: Partition, follower: int) -> bool:
        """Whether a follower gets no records now."""
        return (
            self.counts_as_leader(partition)
            and follower not in partition.state.leadership.in_sync_replicas
            and self.leader.is_exceeded(partition.log.directory.steady_ms())
        )

    def sent(self, partition: Partition, follower: int, size: int) -> None:
        self.traffic.bytes_out += size
        if follower in partition.state.leadership.adding_replicas:
            self.traffic.reassignment_bytes_out += size
        if self.counts_as_leader(partition):
            self.leader.record(size, partition.log.directory.steady_ms())

    # -- what it follows -----------------------------------------------------------------------------------------------

    def counts_as_follower(self, partition: Partition) -> bool:
        listed = partition.log.config.follower_replication_throttled_replicas
        return bool(listed) and is_listed(listed, partition.topic_partition.partition, self._broker_id)

    def waits(self, partition: Partition) -> bool:
        """Whether a partition that has not caught up is not fetched now."""
        return self.counts_as_follower(partition) and self.follower.is_exceeded(partition.log.directory.steady_ms())

    def received(self, partition: Partition, size: int) -> None:
        """Count records that were received from a leader."""
        self.traffic.bytes_in += size
        if self._broker_id in partition.state.leadership.adding_replicas:
            self.traffic.reassignment_bytes_in += size
        if self.counts_as_follower(partition):
            self.follower.record(size, partition.log.directory.steady_ms())
