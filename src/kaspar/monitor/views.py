"""The monitor's reports: immutable values, so readers need no lock.

Times are milliseconds since 1970. An unknown number is None, not -1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kaspar.base.ids import TopicPartition


class Status(IntEnum):
    """Burrow's statuses, with its numbers: up to ERR, larger is worse. STOP, STALL and REWIND are the reasons why a
    partition is in error; a group with such a partition is ERR."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


@dataclass(frozen=True, slots=True)
class Point:
    at_ms: int
    value: float


@dataclass(frozen=True, slots=True)
class LagPoint:
    at_ms: int
    lag: int
    lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset, as a round has read it."""

    offset: int
    at_ms: int
    lag: int
    """Relative to the high watermark of that round."""
    unread: int
    """The number of unread records, by which the group is judged: up to the last stable offset, or up to the high
    watermark if the commit is beyond the last stable offset, which proves that the group reads uncommitted records."""
    kept_up: bool = False
    """Whether it had reached the readable end of the previous round."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The member of a group that reads a partition."""

    member_id: str
    client_id: str
    host: str


@dataclass(frozen=True, slots=True)
class PartitionLag:
    topic: str
    partition: int
    status: Status
    committed_offset: int
    end_offset: int
    """The high watermark."""
    stable_offset: int
    """The last stable offset: how far `read_committed` consumers can read while a transaction is open."""
    lag: int
    stable_lag: int
    lag_seconds: float | None
    """The age of the next record to read; 0 if there is none, None if it is unknown."""
    complete: float
    """The fraction of the window that has been filled: Burrow's `complete`."""
    commits: tuple[Commit, ...]
    """The commits of the window, oldest first; never empty."""
    owner: Owner | None = None

    @property
    def start(self) -> Commit:
        return self.commits[0]

    @property
    def end(self) -> Commit:
        return self.commits[-1]

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class GroupLag:
    group: str
    status: Status
    partitions: tuple[PartitionLag, ...]
    """Sorted by topic and number."""
    total_lag: int
    max_lag_seconds: float | None
    max_partition: PartitionLag | None
    """The partition with the largest lag in records."""
    complete: float
    """The fraction of partitions whose windows are complete."""
    state: str = ""
    """Kafka's name: Stable, Empty ..."""
    kind: str = ""
    """Kafka's name of the group type: Classic, Consumer ..."""
    members: int | None = None
    """The number of members when they were last read."""
    is_stale: bool = False
    """Whether some offsets could not be read in the last round, so that values are from an earlier one."""
    at_ms: int = 0
    """When the offsets were read."""


@dataclass(frozen=True, slots=True)
class BrokerSnapshot:
    broker_id: int
    host: str
    port: int
    rack: str | None
    leaders: int
    """The number of partitions that it leads."""
    replicas: int
    in_sync_replicas: int
    is_controller: bool


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    at_ms: int
    cluster_id: str
    controller_id: int | None
    brokers: tuple[BrokerSnapshot, ...]
    """The live brokers, sorted by id."""
    fenced_brokers: tuple[int, ...]
    """Registered, but not up."""
    topics: int
    partitions: int
    under_replicated: tuple[TopicPartition, ...]
    offline: tuple[TopicPartition, ...]
    """Partitions without a leader."""


@dataclass(frozen=True, slots=True)
class RoundReport:
    """The result of a round of reading offsets."""

    at_ms: int
    duration_ms: float
    groups: int
    partitions: int
    problems: Mapping[str, str] = field(default_factory=dict)
    """What could not be read, and why: `cluster`, `group NAME`, `partition NAME` ..."""

    @property
    def is_complete(self) -> bool:
        return not self.problems
