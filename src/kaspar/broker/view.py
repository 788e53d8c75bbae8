"""The broker as its metrics and health pages see it. Called from another thread, so copies are made in one step."""

from collections.abc import Iterator, Sequence, Set, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kaspar.base.clock import Clock
from kaspar.base.ids import TopicPartition
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.cleaning.numbers import CleanerNumbers
from kaspar.broker.coordination.coordinators import Coordinators
from kaspar.broker.coordination.view import GroupNumbers, TransactionNumbers
from kaspar.broker.fetch.sessions import FetchSessions
from kaspar.broker.log_dir_moves import LogDirMoves
from kaspar.broker.metrics.view import BrokerState, FollowerLag
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.backlog import Backlog
from kaspar.broker.replication.replicas import Replicas
from kaspar.broker.request_quotas import RequestQuotas
from kaspar.config import BrokerConfig
from kaspar.controller.channel import Channel
from kaspar.metadata import NO_LEADER, ClusterImage, PartitionImage
from kaspar.network.api import Purgatory
from kaspar.network.listener import Listener
from kaspar.quotas.clients import UsageReading
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import Log, LogDirectory, LogManager

if TYPE_CHECKING:  # not loaded if no client ever pushes metrics
    from kaspar.broker.telemetry.series import ClientSeries
    from kaspar.broker.telemetry.telemetry import Telemetry

LATE_BY_MS: Final = 5 * 60 * 1000
"""A transaction that is open for this much longer than the maximum timeout is hanging: its coordinator lost it."""


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
        """The replicas without those that a reassignment adds, as in Kafka's OngoingReassignmentState."""
        leadership = self.partition.state.leadership
        return len(leadership.replicas) - len(leadership.adding_replicas)

    @property
    def in_sync_replica_count(self) -> int:
        return len(self.partition.state.leadership.in_sync_replicas)

    @property
    def min_insync_replicas(self) -> int:
        return self.partition.log.config.min_insync_replicas

    @property
    def last_stable_offset_lag(self) -> int:
        partition = self.partition
        return max(partition.high_watermark - partition.last_stable_offset, 0)

    @property
    def is_reassigning(self) -> bool:
        return self.partition.state.leadership.is_reassigning

    @property
    def has_late_transaction(self) -> bool:
        try:
            return self.partition.log.producers.has_late_transaction(self.now_ms, self.late_after_ms)
        except (KeyError, RuntimeError):  # the transaction ended while it was read
            return False


@dataclass(frozen=True, slots=True)
class ReplicationNumbers:
    isr_shrinks: int
    isr_expands: int
    failed_isr_updates: int
    bytes_in: int
    bytes_out: int
    reassignment_bytes_in: int
    reassignment_bytes_out: int
    max_lag: int
    min_fetch_rate: float
    follower_lags: Sequence[FollowerLag]
    failed_partition_count: int
    max_move_lag: int

    @classmethod
    def of(cls, replicas: Replicas, moves: LogDirMoves) -> "ReplicationNumbers":
        in_sync, traffic, fetchers = replicas.in_sync, replicas.throttles.traffic, replicas.fetchers
        return cls(
            isr_shrinks=in_sync.shrinks,
            isr_expands=in_sync.expansions,
            failed_isr_updates=in_sync.failures,
            bytes_in=traffic.bytes_in,
            bytes_out=traffic.bytes_out,
            reassignment_bytes_in=traffic.reassignment_bytes_in,
            reassignment_bytes_out=traffic.reassignment_bytes_out,
            max_lag=fetchers.max_lag,
            min_fetch_rate=fetchers.min_fetch_rate,
            follower_lags=[FollowerLag(*each) for each in fetchers.lags()],
            failed_partition_count=fetchers.failed_partition_count,
            max_move_lag=moves.max_lag,
        )


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
    """Counts of the cluster's image."""

    image: ClusterImage
    broker_id: int
    offline_here: Set[TopicPartition]
    """This broker's replicas on failed log directories. Those that it leads are offline partitions."""

    @property
    def active_broker_count(self) -> int:
        return len(self.image.brokers)

    @property
    def fenced_broker_count(self) -> int:
        """The number of brokers that have replicas and are down."""
        known = {
            replica
            for topic in self.image.topics.values()
            for partition in topic.partitions
            for replica in partition.replicas
        }
        return len(known - self.image.brokers.keys())

    @property
    def controlled_shutdown_broker_count(self) -> int:
        return len(self.image.shutting_down)

    @property
    def topic_count(self) -> int:
        return len(self.image.topics)

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.image.topics.values())

    @property
    def offline_partition_count(self) -> int:
        return sum(leader < 0 for leader, _ in self._leaders())

    @property
    def preferred_replica_imbalance_count(self) -> int:
        return sum(leader != partition.replicas[0] for leader, partition in self._leaders())

    def _leaders(self) -> Iterator[tuple[int, PartitionImage]]:
        """The leaders of all partitions; NO_LEADER if the leader cannot use its log."""
        for name, topic in self.image.topics.items():
            for index, partition in enumerate(topic.partitions):
                is_offline = partition.leader == self.broker_id and TopicPartition(name, index) in self.offline_here
                yield NO_LEADER if is_offline else partition.leader, partition


class Purgatories(Protocol):
    def purgatories(self) -> list[Purgatory]: ...


class BrokerParts(Protocol):
    """The parts of a broker that the pages read."""

    @property
    def broker_id(self) -> int: ...
    @property
    def state(self) -> BrokerState: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def image(self) -> ClusterImage: ...
    @property
    def controller(self) -> Channel: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def logs(self) -> LogManager: ...
    @property
    def listeners(self) -> Sequence[Listener]: ...
    @property
    def pipeline(self) -> Purgatories: ...
    @property
    def fetch_sessions(self) -> FetchSessions: ...
    @property
    def backlog(self) -> Backlog: ...
    @property
    def coordinators(self) -> Coordinators: ...
    @property
    def timers(self) -> Sized: ...
    @property
    def cleaning(self) -> Cleaning: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def moves(self) -> LogDirMoves: ...
    @property
    def quotas(self) -> RequestQuotas: ...
    @property
    def telemetry(self) -> "Telemetry | None": ...


class NoTelemetry:
    """The telemetry of a broker whose clients have not requested a subscription yet."""

    instance_count: Final = 0

    def clients(self) -> "list[ClientSeries]":
        return []


NO_TELEMETRY: Final = NoTelemetry()


class RunningBroker:
    """Implements `metrics.view.BrokerView` for a broker."""

    def __init__(self, broker: BrokerParts) -> None:
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
        return len(self._offline())

    def _offline(self) -> set[TopicPartition]:
        without_log = {
            TopicPartition(topic.name, index)
            for topic in list(self._broker.partitions.by_name.values())
            for index in tuple(topic.offline)
        }
        return without_log | {partition.topic_partition for partition in self._all() if partition.offline}

    def replication(self) -> ReplicationNumbers:
        return ReplicationNumbers.of(self._broker.replicas, self._broker.moves)

    def listeners(self) -> list[Listener]:
        return list(self._broker.listeners)

    def quota_usage(self) -> dict[str, list[UsageReading]]:
        return self._broker.quotas.readings()

    def log_dirs(self) -> list[LogDirectory]:
        return list(self._broker.logs.directories)

    def purgatories(self) -> list[Purgatory]:
        return self._broker.pipeline.purgatories()

    def fetch_sessions(self) -> SessionCounts:
        return SessionCounts.of(self._broker.fetch_sessions)

    def memory_pool(self) -> MemoryPool:
        return MemoryPool(self._broker.config.queued_max_request_bytes, self._broker.backlog.waiting_bytes)

    def request_queue_size(self) -> int:
        return self._broker.backlog.waiting_count

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

    def telemetry(self) -> "Telemetry | NoTelemetry":
        return self._broker.telemetry or NO_TELEMETRY

    def cleaner(self) -> CleanerNumbers:
        return CleanerNumbers.of(self._broker.cleaning, self._broker.logs)

    def controller(self) -> ClusterCounts | None:
        """The cluster's counts; None if another broker is the controller, so that sums over all brokers count each
        once.
        """
        if self.controller_problem() is not None or self._broker.image.controller_id != self._broker.broker_id:
            return None
        return ClusterCounts(self._broker.image, self._broker.broker_id, self._offline())

    def controller_problem(self) -> str | None:
        return self._broker.controller.problem
