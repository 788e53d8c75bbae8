"""A broker as the metrics and health pages see it, made of plain values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kaspar.base.ids import TopicPartition
from kaspar.broker.cleaning.numbers import CleanerNumbers
from kaspar.broker.coordination.view import GroupNumbers, TransactionNumbers
from kaspar.broker.metrics import BrokerMetrics, BrokerState
from kaspar.broker.metrics.view import FollowerLag
from kaspar.broker.telemetry.series import ClientSeries
from kaspar.network.authentication_metrics import AuthenticationMetrics
from kaspar.quotas.clients import UsageReading


@dataclass
class FakeLog:
    topic_partition: TopicPartition
    size: int = 0
    log_start_offset: int = 0
    log_end_offset: int = 0
    segment_count: int = 1
    retention_size_percent: int = 0
    producer_id_count: int = 0


@dataclass
class FakePartition:
    topic_partition: TopicPartition
    is_leader: bool = True
    replica_count: int = 1
    in_sync_replica_count: int = 1
    min_insync_replicas: int = 1
    is_reassigning: bool = False
    has_late_transaction: bool = False
    last_stable_offset_lag: int = 0


@dataclass
class FakeReplication:
    isr_shrinks: int = 0
    isr_expands: int = 0
    failed_isr_updates: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    reassignment_bytes_in: int = 0
    reassignment_bytes_out: int = 0
    max_lag: int = 0
    min_fetch_rate: float = 0.0
    follower_lags: Sequence[FollowerLag] = ()
    failed_partition_count: int = 0
    max_move_lag: int = 0


@dataclass
class FakeListener:
    name: str
    connections: Collection[object] = ()
    accepted: int = 0
    disconnected: int = 0
    rejected: int = 0
    idle_closed: int = 0
    unidentified_closed: int = 0
    authentication: AuthenticationMetrics = field(default_factory=AuthenticationMetrics)


@dataclass
class FakeLogDir:
    path: str
    online: bool = True


@dataclass
class FakePurgatory:
    name: str
    watched: int = 0
    delayed: int = 0


@dataclass
class FakeFetchSessions:
    session_count: int = 0
    cached_partition_count: int = 0
    evictions: int = 0


@dataclass
class FakeMemoryPool:
    limit_bytes: int = -1
    used_bytes: int = 0


@dataclass
class FakeController:
    active_broker_count: int = 1
    topic_count: int = 0
    partition_count: int = 0
    offline_partition_count: int = 0
    preferred_replica_imbalance_count: int = 0
    fenced_broker_count: int = 0
    controlled_shutdown_broker_count: int = 0


@dataclass
class FakeTelemetry:
    instance_count: int = 0
    all_clients: list[ClientSeries] = field(default_factory=list)

    def clients(self) -> Sequence[ClientSeries]:
        return self.all_clients


@dataclass
class FakeBroker:
    current_state: BrokerState = BrokerState.RUNNING
    all_logs: list[FakeLog] = field(default_factory=list)
    all_partitions: list[FakePartition] = field(default_factory=list)
    copied: FakeReplication = field(default_factory=FakeReplication)
    all_listeners: list[FakeListener] = field(default_factory=list)
    directories: list[FakeLogDir] = field(default_factory=lambda: [FakeLogDir("/data/a")])
    all_purgatories: list[FakePurgatory] = field(default_factory=list)
    sessions: FakeFetchSessions = field(default_factory=FakeFetchSessions)
    pool: FakeMemoryPool = field(default_factory=FakeMemoryPool)
    active_controller: FakeController | None = None
    interrupted: str | None = None
    coordinated_groups: GroupNumbers = field(default_factory=GroupNumbers)
    coordinated_transactions: TransactionNumbers = field(default_factory=TransactionNumbers)
    cleaner_numbers: CleanerNumbers = field(default_factory=CleanerNumbers)
    timers: int = 0
    usage: Mapping[str, Sequence[UsageReading]] = field(
        default_factory=lambda: {kind: [] for kind in ("Produce", "Fetch", "Request", "ControllerMutation")}
    )
    pushed: FakeTelemetry = field(default_factory=FakeTelemetry)
    offline_replicas: int = 0
    requests_queued: int = 0
    responses_queued: int = 0

    def state(self) -> BrokerState:
        return self.current_state

    def logs(self) -> Sequence[FakeLog]:
        return self.all_logs

    def partitions(self) -> Sequence[FakePartition]:
        return self.all_partitions

    def offline_replica_count(self) -> int:
        return self.offline_replicas

    def replication(self) -> FakeReplication:
        return self.copied

    def listeners(self) -> Sequence[FakeListener]:
        return self.all_listeners

    def quota_usage(self) -> Mapping[str, Sequence[UsageReading]]:
        return self.usage

    def log_dirs(self) -> Sequence[FakeLogDir]:
        return self.directories

    def purgatories(self) -> Sequence[FakePurgatory]:
        return self.all_purgatories

    def fetch_sessions(self) -> FakeFetchSessions:
        return self.sessions

    def telemetry(self) -> FakeTelemetry:
        return self.pushed

    def memory_pool(self) -> FakeMemoryPool:
        return self.pool

    def request_queue_size(self) -> int:
        return self.requests_queued

    def response_queue_size(self) -> int:
        return self.responses_queued

    def groups(self) -> GroupNumbers:
        return self.coordinated_groups

    def transactions(self) -> TransactionNumbers:
        return self.coordinated_transactions

    def timer_count(self) -> int:
        return self.timers

    def cleaner(self) -> CleanerNumbers:
        return self.cleaner_numbers

    def controller(self) -> FakeController | None:
        return self.active_controller

    def controller_problem(self) -> str | None:
        return self.interrupted


def new_metrics() -> BrokerMetrics:
    return BrokerMetrics(version="1.2.3", start_time_ms=1_700_000_000_500)
