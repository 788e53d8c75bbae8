"""The monitor's metrics page. Names with the prefix `burrow_` are Burrow's. Names with `kafka_consumergroup_` and
`kafka_topic_` are kafka_exporter's, which many dashboards use. Other names begin with `kaspar_`.

The cluster's own metrics are not repeated here: brokers have pages for them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaspar.base.exposition import CONTENT_TYPE, Family, Kind, Sample, labels, render, select
from kaspar.monitor.canary.metrics import CANARY
from kaspar.monitor.core import Monitor
from kaspar.monitor.doctor import Severity
from kaspar.monitor.views import GroupLag, PartitionLag

MonitorFamily = Family[Monitor]


def metrics_routes(monitor: Monitor) -> list[Route]:
    async def metrics(request: Request) -> Response:
        names = frozenset(request.query_params.getlist("name[]"))
        chunks = []
        for chunk in metrics_page(monitor, names):
            chunks.append(chunk)
            await asyncio.sleep(0)  # a cluster with many groups has a long page: let other tasks run
        return Response(b"".join(chunks), headers={"content-type": CONTENT_TYPE})

    return [Route("/metrics", metrics, methods=["GET"])]


def metrics_page(monitor: Monitor, names: frozenset[str] = frozenset()) -> Iterator[bytes]:
    """The page in chunks. `names` selects families; if empty, all are included."""
    yield from render(select(MONITOR, names), monitor)
    report = monitor.canary
    if report is not None:
        yield from render(select(CANARY, names), report)


# --- Constructors of families -----------------------------------------------------------------------------------------


def _of_groups(name: str, text: str, value: Callable[[GroupLag], float | None], *, label: str) -> MonitorFamily:
    """`label` is the label of the group's name: Burrow's `consumer_group`, with the cluster, or kafka_exporter's."""

    def samples(monitor: Monitor) -> Iterator[Sample]:
        for group in monitor.lag.groups().values():
            number = value(group)
            if number is not None:
                yield labels(**_cluster(monitor, label), **{label: group.group}), number

    return Family(name, Kind.GAUGE, text, samples, (*_label_names(label), label))


def _of_partitions(name: str, text: str, value: Callable[[PartitionLag], float | None], *, label: str) -> MonitorFamily:
    def samples(monitor: Monitor) -> Iterator[Sample]:
        for group in monitor.lag.groups().values():
            common = {**_cluster(monitor, label), label: group.group}
            for each in group.partitions:
                number = value(each)
                if number is not None:
                    yield labels(**common, topic=each.topic, partition=each.partition), number

    return Family(name, Kind.GAUGE, text, samples, (*_label_names(label), label, "topic", "partition"))


def _of_topics(name: str, text: str, value: Callable[[PartitionLag], int]) -> MonitorFamily:
    """Sums over the partitions of a topic, with the labels of kafka_exporter."""

    def samples(monitor: Monitor) -> Iterator[Sample]:
        for group in monitor.lag.groups().values():
            sums: Counter[str] = Counter()
            for each in group.partitions:
                sums[each.topic] += value(each)
            for topic, number in sums.items():
                yield labels(**{_KAFKA_EXPORTER: group.group}, topic=topic), number

    return Family(name, Kind.GAUGE, text, samples, (_KAFKA_EXPORTER, "topic"))


def _single(name: str, text: str, value: Callable[[Monitor], float | None]) -> MonitorFamily:
    def samples(monitor: Monitor) -> Iterator[Sample]:
        number = value(monitor)
        if number is not None:
            yield "", number

    return Family(name, Kind.GAUGE, text, samples)


_BURROW: Final = "consumer_group"
_KAFKA_EXPORTER: Final = "consumergroup"


def _cluster(monitor: Monitor, label: str) -> dict[str, str]:
    return {"cluster": monitor.config.settings.cluster_name} if label == _BURROW else {}


def _label_names(label: str) -> tuple[str, ...]:
    return ("cluster",) if label == _BURROW else ()


# --- Samples of the cluster -------------------------------------------------------------------------------------------


def _ends(*, with_cluster: bool) -> Callable[[Monitor], Iterator[Sample]]:
    def samples(monitor: Monitor) -> Iterator[Sample]:
        common = _cluster(monitor, _BURROW) if with_cluster else {}
        for where, ends in monitor.lag.ends().items():
            yield labels(**common, topic=where.topic, partition=where.partition), ends.high_watermark

    return samples


def _partition_counts(monitor: Monitor) -> Iterator[Sample]:
    for topic, offsets in monitor.lag.topics().items():
        yield labels(topic=topic), len(offsets)


def _findings(monitor: Monitor) -> Iterator[Sample]:
    found = Counter(each.severity for each in monitor.findings)
    for severity in Severity:
        yield labels(severity=severity.value), found[severity]


MONITOR: Final[tuple[MonitorFamily, ...]] = (
    _of_groups(
        "burrow_kafka_consumer_status",
        "The status of the group: 1 OK, 2 WARN, 3 ERR.",
        lambda group: group.status,
        label=_BURROW,
    ),
    _of_groups(
        "burrow_kafka_consumer_lag_total",
        "Records between the group's offsets and the high watermarks, summed over all partitions.",
        lambda group: group.total_lag,
        label=_BURROW,
    ),
    _of_partitions(
        "burrow_kafka_consumer_partition_lag",
        "Records between the group's offset and the high watermark.",
        lambda each: each.lag,
        label=_BURROW,
    ),
    _of_partitions(
        "burrow_kafka_consumer_current_offset",
        "The offset that the group has committed.",
        lambda each: each.committed_offset,
        label=_BURROW,
    ),
    Family(
        "burrow_kafka_topic_partition_offset",
        Kind.GAUGE,
        "The high watermark.",
        _ends(with_cluster=True),
        ("cluster", "topic", "partition"),
    ),
    _of_partitions(
        "kaspar_consumer_group_partition_status",
        "The status of the partition: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND.",
        lambda each: each.status,
        label=_BURROW,
    ),
    _of_partitions(
        "kaspar_consumer_group_stable_lag",
        "Records between the group's offset and the last stable offset: what a read_committed consumer can read.",
        lambda each: each.stable_lag,
        label=_BURROW,
    ),
    _of_partitions(
        "kaspar_consumer_group_lag_seconds",
        "The age of the next record to read; 0 if there is none.",
        lambda each: each.lag_seconds,
        label=_BURROW,
    ),
    _of_groups(
        "kaspar_consumer_group_max_lag_seconds",
        "The largest lag in seconds of the group's partitions.",
        lambda group: group.max_lag_seconds,
        label=_BURROW,
    ),
    _of_groups(
        "kaspar_consumer_group_stale",
        "1 if the group's offsets, or the log ends of its partitions, could not be read in the last round.",
        lambda group: int(group.is_stale),
        label=_BURROW,
    ),
    _of_partitions(
        "kafka_consumergroup_lag",
        "Records between the group's offset and the high watermark.",
        lambda each: each.lag,
        label=_KAFKA_EXPORTER,
    ),
    _of_partitions(
        "kafka_consumergroup_current_offset",
        "The offset that the group has committed.",
        lambda each: each.committed_offset,
        label=_KAFKA_EXPORTER,
    ),
    _of_topics("kafka_consumergroup_lag_sum", "The lag summed over the partitions of a topic.", lambda each: each.lag),
    _of_topics(
        "kafka_consumergroup_current_offset_sum",
        "The committed offsets summed over the partitions of a topic.",
        lambda each: each.committed_offset,
    ),
    _of_groups(
        "kafka_consumergroup_members",
        "The number of members of the group.",
        lambda group: group.members,
        label=_KAFKA_EXPORTER,
    ),
    Family(
        "kafka_topic_partition_current_offset",
        Kind.GAUGE,
        "The high watermark.",
        _ends(with_cluster=False),
        ("topic", "partition"),
    ),
    Family("kafka_topic_partitions", Kind.GAUGE, "The number of partitions of a topic.", _partition_counts, ("topic",)),
    _single(
        "kafka_brokers",
        "The number of live brokers.",
        lambda monitor: None if monitor.cluster is None else len(monitor.cluster.brokers),
    ),
    _single(
        "kaspar_monitor_cluster_up",
        "1 if the last attempt to describe the cluster succeeded.",
        lambda monitor: int(monitor.cluster is not None and not monitor.cluster_problem),
    ),
    _single(
        "kaspar_monitor_round_duration_seconds",
        "The duration of the last round of reading offsets.",
        lambda monitor: None if monitor.lag.last_round is None else monitor.lag.last_round.duration_ms / 1000,
    ),
    _single(
        "kaspar_monitor_round_problems",
        "How many groups and partitions could not be read in the last round.",
        lambda monitor: None if monitor.lag.last_round is None else len(monitor.lag.last_round.problems),
    ),
    _single(
        "kaspar_monitor_last_round_timestamp_seconds",
        "When the last round began.",
        lambda monitor: None if monitor.lag.last_round is None else monitor.lag.last_round.at_ms / 1000,
    ),
    Family(
        "kaspar_doctor_findings",
        Kind.GAUGE,
        "The doctor's findings, by severity.",
        _findings,
        ("severity",),
    ),
)
