"""The canary's metrics, for the monitor's page.

Names that start with `kmf_services_` are those that the JMX exporter gives to the metrics of Kafka Monitor (Xinfra
Monitor), so that its dashboards work. `kaspar_canary_` has the same values by partition and leader, and more.
"""

from collections.abc import Callable, Iterator
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, labels
from kaspar.monitor.canary.report import CanaryReport, Counts, Latencies, Measured, PartitionReport

CanaryFamily = Family[CanaryReport]

_NAME: Final = labels(name="kaspar-canary")


def _of_all(
    name: str, kind: Kind, text: str, value: Callable[[CanaryReport], float | None], kafka_monitor: str = ""
) -> CanaryFamily:
    """One number for the whole topic. The metric is absent while it has no value."""

    def samples(report: CanaryReport) -> Iterator[Sample]:
        number = value(report)
        if number is not None:
            yield _NAME if kafka_monitor else "", number

    return Family(name, kind, text, samples, ("name",) if kafka_monitor else (), kafka_monitor)


def _kmf(service: str, attribute: str, text: str, value: Callable[[CanaryReport], float | None]) -> CanaryFamily:
    kind = Kind.COUNTER if attribute.endswith("-total") else Kind.GAUGE
    name = f"kmf_services_{service}_{attribute}".replace("-", "_")
    return _of_all(name, kind, text, value, f"kmf.services:type={service},name=* {attribute}")


def _by_partition(name: str, kind: Kind, text: str, value: Callable[[PartitionReport], float | None]) -> CanaryFamily:
    def samples(report: CanaryReport) -> Iterator[Sample]:
        for each in report.partitions:
            number = value(each)
            if number is not None:
                yield labels(partition=each.partition, leader=each.leader), number

    return Family(f"kaspar_canary_{name}", kind, text, samples, ("partition", "leader"))


def _counted(name: str, text: str, value: Callable[[Counts], int]) -> CanaryFamily:
    """Labelled by partition only: with the leader as a label, a counter would restart whenever the leader changes."""

    def samples(report: CanaryReport) -> Iterator[Sample]:
        for each in report.partitions:
            yield labels(partition=each.partition), value(each.counts)

    return Family(f"kaspar_canary_records_{name}_total", Kind.COUNTER, text, samples, ("partition",))


def _latency(name: str, text: str, value: Callable[[Measured], Latencies | None]) -> CanaryFamily:
    def samples(report: CanaryReport) -> Iterator[Sample]:
        for each in report.partitions:
            latencies = value(each.measured)
            if latencies is not None:
                for quantile, number in _quantiles(latencies):
                    yield labels(partition=each.partition, leader=each.leader, quantile=quantile), number

    return Family(f"kaspar_canary_{name}_latency_ms", Kind.GAUGE, text, samples, ("partition", "leader", "quantile"))


def _quantiles(latencies: Latencies) -> Iterator[tuple[str, float]]:
    yield "0.5", latencies.p50
    yield "0.95", latencies.p95
    yield "0.99", latencies.p99
    yield "0.999", latencies.p999
    yield "1", latencies.maximum


def _produce(part: str) -> Callable[[CanaryReport], float | None]:
    return lambda report: getattr(report.measured.produce_latencies, part, None)


def _end_to_end(part: str) -> Callable[[CanaryReport], float | None]:
    return lambda report: getattr(report.measured.end_to_end_latencies, part, None)


_PRODUCE: Final = "produce-service"
_CONSUME: Final = "consume-service"

CANARY: Final[tuple[CanaryFamily, ...]] = (
    _of_all(
        "kaspar_canary_status",
        Kind.GAUGE,
        "The canary's status: 0 starting, 1 OK, 2 late, 3 losing records, 4 unavailable.",
        lambda report: report.status,
    ),
    _of_all(
        "kaspar_canary_topics_created_total",
        Kind.COUNTER,
        "How many times the canary has created its topic; more than once means that it was deleted.",
        lambda report: report.topics_created,
    ),
    _by_partition(
        "partition_status",
        Kind.GAUGE,
        "The status of each partition, with the broker that leads it.",
        lambda each: each.status,
    ),
    _by_partition(
        "produce_availability",
        Kind.GAUGE,
        "The fraction of the last minute, 0 to 1, in which records were acknowledged.",
        lambda each: each.measured.produce_availability,
    ),
    _by_partition(
        "consume_availability",
        Kind.GAUGE,
        "The fraction of the last minute's acknowledged records, 0 to 1, that were read in time.",
        lambda each: each.measured.consume_availability,
    ),
    _latency("produce", "Time until a record was acknowledged, in ms.", lambda measured: measured.produce_latencies),
    _latency("end_to_end", "Time until a record was read, in ms.", lambda measured: measured.end_to_end_latencies),
    _counted("produced", "Records that were acknowledged.", lambda counts: counts.produced),
    _counted("failed", "Records that were rejected or not acknowledged in time.", lambda counts: counts.failed),
    _counted("consumed", "Records that were read.", lambda counts: counts.consumed),
    _counted("lost", "Records that were acknowledged and are not in the log.", lambda counts: counts.lost),
    _counted("doubled", "Records that were read twice.", lambda counts: counts.doubled),
    _counted("late", "Records that were not read within canary.late.ms.", lambda counts: counts.late),
    _counted("out_of_order", "Records that were read after a later one.", lambda counts: counts.out_of_order),
    _counted("expired", "Records that were deleted before they were read.", lambda counts: counts.expired),
    _kmf(
        _PRODUCE,
        "produce-availability-avg",
        "The fraction of the last minute, 0 to 1, in which records were acknowledged.",
        lambda report: report.measured.produce_availability,
    ),
    _kmf(_PRODUCE, "records-produced-total", "Records acknowledged.", lambda report: report.counts.produced),
    _kmf(_PRODUCE, "produce-error-total", "Records not acknowledged.", lambda report: report.counts.failed),
    _kmf(_PRODUCE, "produce-delay-ms-avg", "Mean acknowledgement latency.", _produce("mean")),
    _kmf(_PRODUCE, "produce-delay-ms-max", "Maximum acknowledgement latency.", _produce("maximum")),
    _kmf(_PRODUCE, "produce-delay-ms-99th", "99th percentile of acknowledgement latency.", _produce("p99")),
    _kmf(_PRODUCE, "produce-delay-ms-999th", "99.9th percentile of acknowledgement latency.", _produce("p999")),
    _kmf(
        _CONSUME,
        "consume-availability-avg",
        "The fraction of the last minute's acknowledged records, 0 to 1, that were read in time.",
        lambda report: report.measured.consume_availability,
    ),
    _kmf(_CONSUME, "records-consumed-total", "Records read.", lambda report: report.counts.consumed),
    _kmf(_CONSUME, "records-lost-total", "Records lost.", lambda report: report.counts.lost),
    _kmf(_CONSUME, "records-duplicated-total", "Records read twice.", lambda report: report.counts.doubled),
    _kmf(_CONSUME, "records-delayed-total", "Records that were late.", lambda report: report.counts.late),
    _kmf(_CONSUME, "records-delay-ms-avg", "Mean end-to-end latency.", _end_to_end("mean")),
    _kmf(_CONSUME, "records-delay-ms-max", "Maximum end-to-end latency.", _end_to_end("maximum")),
    _kmf(_CONSUME, "records-delay-ms-99th", "99th percentile of end-to-end latency.", _end_to_end("p99")),
    _kmf(_CONSUME, "records-delay-ms-999th", "99.9th percentile of end-to-end latency.", _end_to_end("p999")),
)
"""Rendered by kaspar.base.exposition."""
