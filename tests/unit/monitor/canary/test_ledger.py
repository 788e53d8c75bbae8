"""Totals and the report of all partitions."""

import pytest

from kaspar.monitor.canary.ledger import Ledger, worst
from kaspar.monitor.canary.report import CanaryStatus, Latencies


def deliver(ledger: Ledger, number: int, latency_ms: float) -> None:
    partition = ledger.partition(number)
    partition.start(0)
    sequence = partition.begin(0)
    assert sequence is not None
    partition.acknowledge(sequence, sequence, latency_ms)
    partition.read(sequence, sequence, latency_ms)


def test_totals_keep_what_partitions_counted_that_are_gone() -> None:
    ledger = Ledger(late_ms=5_000, window_ms=60_000)
    deliver(ledger, 0, 1)
    deliver(ledger, 1, 1)
    assert len(ledger.report({0: 1}, 1)) == 1
    assert ledger.counts().produced == 2


def test_report_is_by_partition_with_its_leader_and_the_worst_status_is_that_of_all() -> None:
    ledger = Ledger(late_ms=5_000, window_ms=60_000)
    deliver(ledger, 0, 1)
    deliver(ledger, 1, 6_000)
    fine, late = ledger.report({1: 7, 0: 3}, 6_000)
    assert (fine.partition, fine.leader, fine.status) == (0, 3, CanaryStatus.OK)
    assert (late.partition, late.leader, late.status) == (1, 7, CanaryStatus.LATE)
    assert worst((fine, late)) is CanaryStatus.LATE
    assert ledger.measured((0, 1), 6_000).consume_availability == 0.5


def test_availability_is_unknown_until_something_was_tried() -> None:
    measured = Ledger(late_ms=5_000, window_ms=60_000).measured((), 0)
    assert measured.produce_availability is None
    assert measured.end_to_end_latencies is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], (5, 5, 5, 5, 5)),
        ([float(each) for each in range(1, 1001)], (500, 950, 990, 999, 1000)),
    ],
)
def test_percentile_is_the_smallest_value_that_the_part_does_not_exceed(
    values: list[float], expected: tuple[float, ...]
) -> None:
    found = Latencies.of(values[::-1])
    assert found is not None
    assert (found.p50, found.p95, found.p99, found.p999, found.maximum) == expected
