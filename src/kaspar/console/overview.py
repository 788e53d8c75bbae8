"""The cluster's health at a glance, from the monitor's data, restricted to what the caller may see."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.monitor.canary import CanaryReport
from kaspar.monitor.views import ClusterSnapshot, GroupLag, Status

_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class PartitionsInTrouble:
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupInTrouble:
    group: str
    status: str
    total_lag: int
    max_lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class CanaryView:
    status: str
    problem: str
    produce_availability: float | None
    consume_availability: float | None
    latency_p99_ms: float | None
    """The latency from producing to consuming."""


@dataclass(frozen=True, slots=True)
class Overview:
    at_ms: int
    cluster_id: str
    brokers: int
    brokers_down: tuple[int, ...]
    """The ids of brokers that are registered, but not up."""
    controller_id: int | None
    topics: int
    partitions: int
    under_replicated: PartitionsInTrouble
    offline: PartitionsInTrouble
    groups: int
    groups_in_trouble: int
    worst_groups: tuple[GroupInTrouble, ...]
    canary: CanaryView | None
    """None if the canary is not enabled."""


def overview_of(
    cluster: ClusterSnapshot,
    groups: Mapping[str, GroupLag],
    canary: CanaryReport | None,
    *,
    visible_topics: Mapping[str, int] | None,
    visible_groups: Collection[str] | None,
) -> Overview:
    """The overview for a caller. `visible_topics` and `visible_groups` are None if the caller may see all of them.
    Topics have their numbers of partitions."""
    shown = [each for each in groups.values() if visible_groups is None or each.group in visible_groups]
    worst = sorted(
        (each for each in shown if each.status > Status.OK), key=lambda each: (-each.status, -each.total_lag)
    )
    return Overview(
        cluster.at_ms,
        cluster.cluster_id,
        len(cluster.brokers),
        cluster.fenced_brokers,
        cluster.controller_id,
        cluster.topics if visible_topics is None else len(visible_topics),
        cluster.partitions if visible_topics is None else sum(visible_topics.values()),
        _in_trouble(cluster.under_replicated, visible_topics),
        _in_trouble(cluster.offline, visible_topics),
        len(shown),
        len(worst),
        tuple(
            GroupInTrouble(each.group, each.status.name, each.total_lag, each.max_lag_seconds)
            for each in worst[:_EXAMPLES]
        ),
        None if canary is None else _canary(canary),
    )


def _in_trouble(partitions: Collection[TopicPartition], visible: Collection[str] | None) -> PartitionsInTrouble:
    shown = [each for each in partitions if visible is None or each.topic in visible]
    topics = Counter(each.topic for each in shown)
    return PartitionsInTrouble(len(shown), tuple(topics)[:_EXAMPLES])


def _canary(report: CanaryReport) -> CanaryView:
    measured = report.measured
    latencies = measured.end_to_end_latencies
    return CanaryView(
        report.status.name,
        report.problem,
        measured.produce_availability,
        measured.consume_availability,
        None if latencies is None else latencies.p99,
    )
