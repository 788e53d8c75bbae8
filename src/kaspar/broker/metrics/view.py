"""What the metrics and health pages may know of a running broker: a narrow view that the broker implements.

Everything here is called from the HTTP server's thread while the event loop goes on. So a method that returns several
things returns a copy made in one step (`list(self._partitions.values())`, which no other thread can come between),
and nothing here waits, locks or touches a file.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from kaspar.base.ids import TopicPartition


class BrokerState(IntEnum):
    """The values of Kafka's BrokerState metric."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class LogView(Protocol):
    """One partition's log; `storage.Log` is one."""

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def size(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def segment_count(self) -> int: ...


class PartitionView(Protocol):
    """One replica on this broker."""

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def replica_count(self) -> int: ...
    @property
    def in_sync_replica_count(self) -> int: ...
    @property
    def min_insync_replicas(self) -> int: ...
    @property
    def has_late_transaction(self) -> bool:
        """Whether a transaction is open on it for longer than any may take."""
        ...


class ListenerView(Protocol):
    """One listener; `broker.listener.Listener` is one. All counts are since the start."""

    @property
    def name(self) -> str: ...
    @property
    def connections(self) -> Collection[object]:
        """The open ones; only its length is asked for."""
        ...

    @property
    def accepted(self) -> int: ...
    @property
    def disconnected(self) -> int: ...
    @property
    def rejected(self) -> int: ...
    @property
    def expired(self) -> int: ...


class LogDirView(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def online(self) -> bool: ...


class PurgatoryView(Protocol):
    """Where requests of one kind wait: each counts once in `delayed`, and in `watched` for each of its partitions."""

    @property
    def name(self) -> str:
        """Produce or Fetch."""
        ...

    @property
    def watched(self) -> int: ...
    @property
    def delayed(self) -> int: ...


class FetchSessionsView(Protocol):
    @property
    def session_count(self) -> int: ...
    @property
    def cached_partition_count(self) -> int: ...
    @property
    def evictions(self) -> int: ...


class MemoryPoolView(Protocol):
    """The memory that requests under way hold, bounded by `queued.max.request.bytes`."""

    @property
    def limit_bytes(self) -> int:
        """Negative where there is no bound."""
        ...

    @property
    def used_bytes(self) -> int: ...


class ControllerView(Protocol):
    """What the active controller knows of the whole cluster."""

    @property
    def active_broker_count(self) -> int: ...
    @property
    def topic_count(self) -> int: ...
    @property
    def partition_count(self) -> int: ...
    @property
    def offline_partition_count(self) -> int: ...
    @property
    def preferred_replica_imbalance_count(self) -> int: ...


class CoordinatorView(Protocol):
    """A coordinator's partitions on this broker."""

    @property
    def active_count(self) -> int: ...
    @property
    def loading_count(self) -> int: ...
    @property
    def load_times_ms(self) -> list[float]:
        """Of the last 30 seconds."""
        ...


class GroupsView(CoordinatorView, Protocol):
    """The groups that this broker coordinates. States are by Kafka's names, and counts since the start."""

    @property
    def classic_states(self) -> Mapping[str, int]: ...
    @property
    def consumer_states(self) -> Mapping[str, int]: ...
    @property
    def offset_count(self) -> int: ...
    @property
    def offset_commits(self) -> int: ...
    @property
    def offset_expirations(self) -> int: ...
    @property
    def offset_deletions(self) -> int: ...
    @property
    def classic_rebalances(self) -> int: ...
    @property
    def consumer_rebalances(self) -> int: ...
    @property
    def waiting_count(self) -> int:
        """Requests that wait for an answer."""
        ...


class TransactionsView(CoordinatorView, Protocol):
    """The transactional ids that this broker coordinates."""

    @property
    def states(self) -> Mapping[str, int]: ...
    @property
    def prepared_count(self) -> int: ...
    @property
    def oldest_prepared_ms(self) -> int: ...
    @property
    def waiting_markers(self) -> int: ...


class UncleanableView(Protocol):
    """What cannot be cleaned of one log directory."""

    @property
    def path(self) -> str: ...
    @property
    def partition_count(self) -> int: ...
    @property
    def dirty_bytes(self) -> int: ...


class CleanerTotalsView(Protocol):
    """Counts since the start."""

    @property
    def runs(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def records_removed(self) -> int: ...


class CleanerView(Protocol):
    """The log cleaner. What is of a last cleaning is that of each thread's."""

    @property
    def recopy_percent(self) -> int: ...
    @property
    def max_buffer_utilization_percent(self) -> int: ...
    @property
    def max_clean_time_secs(self) -> int: ...
    @property
    def max_compaction_delay_secs(self) -> int: ...
    @property
    def dead_thread_count(self) -> int: ...
    @property
    def max_dirty_percent(self) -> int: ...
    @property
    def time_since_last_run_ms(self) -> int: ...
    @property
    def uncleanable(self) -> Sequence[UncleanableView]:
        """One for each log directory."""
        ...

    @property
    def totals(self) -> CleanerTotalsView: ...


class BrokerView(Protocol):
    def state(self) -> BrokerState: ...

    def logs(self) -> Sequence[LogView]:
        """Every log that is on a directory that works."""
        ...

    def partitions(self) -> Sequence[PartitionView]:
        """Every replica that this broker holds or should hold, those on failed directories included."""
        ...

    def offline_replica_count(self) -> int:
        """How many of them are on failed directories."""
        ...

    def listeners(self) -> Sequence[ListenerView]: ...
    def log_dirs(self) -> Sequence[LogDirView]: ...
    def purgatories(self) -> Sequence[PurgatoryView]: ...
    def fetch_sessions(self) -> FetchSessionsView: ...
    def memory_pool(self) -> MemoryPoolView: ...

    def request_queue_size(self) -> int:
        """Requests that have been received and are not being worked on yet."""
        ...

    def response_queue_size(self) -> int:
        """Responses that are ready and wait for an earlier one on their connection."""
        ...

    def groups(self) -> GroupsView: ...
    def transactions(self) -> TransactionsView: ...
    def timer_count(self) -> int: ...
    def cleaner(self) -> CleanerView: ...

    def controller(self) -> ControllerView | None:
        """None where this broker is not the controller, or cannot reach the metadata store."""
        ...

    def controller_problem(self) -> str | None:
        """Why nothing can be changed in the cluster now, as a sentence."""
        ...
