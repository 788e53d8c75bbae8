"""The broker as its metrics and health pages see it. Called from another thread, so everything is a copy made in one
step.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kaspar.base.ids import TopicPartition
from kaspar.broker.cleaner_numbers import CleanerNumbers
from kaspar.broker.coordination.view import GroupNumbers, TransactionNumbers
from kaspar.broker.fetch_sessions import FetchSessions
from kaspar.broker.listener import Listener
from kaspar.broker.metrics.view import BrokerState
from kaspar.metadata import ClusterImage
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import Log, LogDirectory

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


LATE_BY_MS: Final = 5 * 60 * 1000
"""A transaction that is open for so much longer than any may take has been forgotten by its coordinator."""


@dataclass(frozen=True, slots=True)
class HostedReplica:
    partition: Partition
    now_ms: int
    late_after_ms: int

    @property
    def topic_partition(self) -> TopicPartition:
        return self.partition.topic_partition

    @property
    def is_leader(self) -> bool:
        return self.partition.state.role is Role.LEADER

    @property
    def replica_count(self) -> int:
        return len(self.partition.state.leadership.replicas)

    @property
    def in_sync_replica_count(self) -> int:
        return len(self.partition.state.leadership.in_sync_replicas)

    @property
    def min_insync_replicas(self) -> int:
        return self.partition.log.config.min_insync_replicas

    @property
    def has_late_transaction(self) -> bool:
        try:
            return self.partition.log.producers.has_late_transaction(self.now_ms, self.late_after_ms)
        except (KeyError, RuntimeError):  # it ended while it was looked at
            return False


@dataclass(frozen=True, slots=True)
class Purgatory:
    name: str
    watched: int
    delayed: int


@dataclass(frozen=True, slots=True)
class SessionCounts:
    session_count: int
    cached_partition_count: int
    evictions: int

    @classmethod
    def of(cls, sessions: FetchSessions) -> "SessionCounts":
        return cls(len(sessions), sessions.partition_count, sessions.evictions)


@dataclass(frozen=True, slots=True)
class MemoryPool:
    limit_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """What the controller knows of the cluster, counted from its image."""

    image: ClusterImage
    offline_replica_count: int
    """Of this broker's replicas, those on failed log directories. They are the only ones of their partitions, which
    therefore have no leader that takes requests, whoever the image names.
    """

    @property
    def active_broker_count(self) -> int:
        return len(self.image.brokers)

    @property
    def topic_count(self) -> int:
        return len(self.image.topics)

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.image.topics.values())

    @property
    def offline_partition_count(self) -> int:
        without_leader = sum(
            partition.leader < 0 for topic in self.image.topics.values() for partition in topic.partitions
        )
        return without_leader + self.offline_replica_count

    @property
    def preferred_replica_imbalance_count(self) -> int:
        led_by_another = sum(
            partition.leader != partition.replicas[0]
            for topic in self.image.topics.values()
            for partition in topic.partitions
        )
        return led_by_another + self.offline_replica_count


class RunningBroker:
    """`metrics.view.BrokerView` of a broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def state(self) -> BrokerState:
        return self._broker.state

    def _all(self) -> list[Partition]:
        return [
            partition
            for topic in list(self._broker.partitions.by_name.values())
            for partition in list(topic.partitions.values())
        ]

    def logs(self) -> list[Log]:
        return [partition.log for partition in self._all() if not partition.offline]

    def partitions(self) -> list[HostedReplica]:
        now_ms = self._broker.clock.now_ms()
        late_after_ms = self._broker.config.transaction_max_timeout_ms + LATE_BY_MS
        return [HostedReplica(partition, now_ms, late_after_ms) for partition in self._all()]

    def offline_replica_count(self) -> int:
        without_log = sum(len(topic.offline) for topic in list(self._broker.partitions.by_name.values()))
        return without_log + sum(partition.offline for partition in self._all())

    def listeners(self) -> list[Listener]:
        return list(self._broker.listeners)

    def log_dirs(self) -> list[LogDirectory]:
        return list(self._broker.logs.directories)

    def purgatories(self) -> list[Purgatory]:
        return self._broker.requests.purgatories()

    def fetch_sessions(self) -> SessionCounts:
        return SessionCounts.of(self._broker.fetch_sessions)

    def memory_pool(self) -> MemoryPool:
        return MemoryPool(self._broker.config.queued_max_request_bytes, self._broker.appends.waiting_bytes)

    def request_queue_size(self) -> int:
        return self._broker.appends.waiting_count

    def response_queue_size(self) -> int:
        return sum(
            connection.responses_waiting
            for listener in self._broker.listeners
            for connection in list(listener.connections)
        )

    def groups(self) -> GroupNumbers:
        return GroupNumbers.of(self._broker.coordinators)

    def transactions(self) -> TransactionNumbers:
        return TransactionNumbers.of(self._broker.coordinators)

    def timer_count(self) -> int:
        return len(self._broker.timers)

    def cleaner(self) -> CleanerNumbers:
        return CleanerNumbers.of(self._broker)

    def controller(self) -> ClusterCounts | None:
        if self.controller_problem() is not None:
            return None
        return ClusterCounts(self._broker.image, self.offline_replica_count())

    def controller_problem(self) -> str | None:
        return self._broker.controller.interrupted
