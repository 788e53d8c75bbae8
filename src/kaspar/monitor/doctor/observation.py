"""An observation of a cluster: plain values, which checks read and compare.

A part that could not be read is empty, and `missing` says why. No check reports a fault because a part is empty.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.groups import WITHOUT_MEMBERS
from kaspar.client.admin.topics import PartitionDescription, TopicDescription
from kaspar.monitor.doctor.access import Access
from kaspar.monitor.scraping.exposition import Sample
from kaspar.quotas.entities import QuotaEntity

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SCHEMAS_TOPIC = "_schemas"


class Missing(NamedTuple):
    """A part that could not be read."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    broker_id: int
    host: str
    port: int
    is_fenced: bool = False
    is_responding: bool = True


@dataclass(frozen=True, slots=True)
class LogDirSeen:
    path: str
    is_offline: bool
    total_bytes: int | None
    usable_bytes: int | None
    """Both are of the volume; None if the broker does not report them (before Kafka 3.3)."""
    sizes: Mapping[TopicPartition, int]
    """The sizes of the replicas in the directory."""

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


@dataclass(frozen=True, slots=True)
class GroupSeen:
    state: str
    committed: Mapping[TopicPartition, int]
    members: int | None = None
    """None if the group was not described."""
    idle_members: int = 0
    """Members without a partition."""

    @property
    def has_members(self) -> bool:
        return self.state not in WITHOUT_MEMBERS


class LogEnds(NamedTuple):
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    old_until: int | None = None
    """Records before this offset have used up most of their topic's retention.ms; None if this was not looked up."""


@dataclass(frozen=True, slots=True)
class OpenTransactionSeen:
    transactional_id: str
    state: str
    start_time_ms: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class HangingTransactionSeen:
    partition: TopicPartition
    producer_id: int
    last_timestamp: int


@dataclass(frozen=True, slots=True)
class FeaturesSeen:
    """The features of one broker."""

    supported: Mapping[str, int]
    """The highest level of each feature."""
    finalized: Mapping[str, int]
    apis: frozenset[tuple[int, int]]
    """Each API key with its highest version."""


@dataclass(frozen=True, slots=True)
class CertificateSeen:
    broker_id: int
    listener: str
    not_after_ms: int


@dataclass(frozen=True, slots=True)
class PageSeen:
    """A broker's metrics page: the samples of the families that checks read."""

    families: Mapping[str, tuple[Sample, ...]]

    def samples(self, family: str) -> tuple[Sample, ...]:
        return self.families.get(family, ())

    def value(self, family: str) -> float | None:
        """The value of the sample without labels; None if there is none."""
        return next((each.value for each in self.samples(family) if not each.labels), None)


class ClockSeen(NamedTuple):
    """The difference between a broker's clock and that of the observing machine."""

    ahead_ms: int
    uncertainty_ms: int
    """The uncertainty due to the resolution of the broker's timestamp and the duration of the request."""
    source: str


Settings = Mapping[str, str]
"""The values of settings by name, without sensitive ones."""


@dataclass(frozen=True, slots=True)
class Observation:
    at_ms: int
    """The time on the clock of the observing machine."""
    access: Access = field(default_factory=Access)
    controller_id: int = -1
    brokers: Mapping[int, BrokerSeen] = field(default_factory=dict)
    topics: Mapping[str, TopicDescription] = field(default_factory=dict)
    reassigning: frozenset[TopicPartition] = frozenset()
    log_dirs: Mapping[int, tuple[LogDirSeen, ...]] = field(default_factory=dict)
    groups: Mapping[str, GroupSeen] = field(default_factory=dict)
    ends: Mapping[TopicPartition, LogEnds] = field(default_factory=dict)
    """For partitions with committed offsets."""
    transactions: tuple[OpenTransactionSeen, ...] = ()
    """Transactions that have been open for a long time."""
    hanging: tuple[HangingTransactionSeen, ...] = ()
    broker_settings: Mapping[int, Settings] = field(default_factory=dict)
    topic_settings: Mapping[str, Settings] = field(default_factory=dict)
    newest_timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The largest record timestamp in one partition of each of the largest topics."""
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    features: Mapping[int, FeaturesSeen] = field(default_factory=dict)
    certificates: tuple[CertificateSeen, ...] = ()
    pages: Mapping[int, PageSeen] = field(default_factory=dict)
    clocks: Mapping[int, ClockSeen] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()

    @property
    def live_brokers(self) -> list[int]:
        return [each.broker_id for each in self.brokers.values() if not each.is_fenced]

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionDescription]]:
        for topic in self.topics.values():
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition), each

    def topic_setting(self, topic: str, name: str) -> str | None:
        return self.topic_settings.get(topic, {}).get(name)

    def number(self, topic: str, name: str) -> int | None:
        """The value of a numeric topic setting; None if it is unknown."""
        value = self.topic_setting(topic, name)
        return None if value is None or not value.lstrip("-").isdigit() else int(value)

    def broker_setting(self, name: str) -> str | None:
        """The value at the first broker that reports it."""
        return next((each[name] for each in self.broker_settings.values() if name in each), None)
