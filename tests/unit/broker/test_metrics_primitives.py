"""Histograms: what goes in comes out at the right percentile, and is forgotten in time."""

import random

import pytest

from kaspar.base.metrics import (
    BUCKET_COUNT,
    DIRECT_BUCKETS,
    DIRECT_VALUES,
    PERCENTILES,
    Histogram,
    bucket_bounds,
    bucket_of,
)


def test_buckets_cover_every_value_without_gap_or_overlap() -> None:
    expected_low = 0
    for bucket in range(BUCKET_COUNT):
        low, high = bucket_bounds(bucket)
        assert low == expected_low
        assert bucket_of(low) == bucket_of(high) == bucket
        assert high - low <= low / 16
        expected_low = high + 1
    assert expected_low == 1 << 36


def test_a_value_past_the_last_bucket_is_counted_in_the_last_one() -> None:
    assert bucket_of(1 << 36) == bucket_of(1 << 60) == BUCKET_COUNT - 1


def test_a_negative_value_counts_as_zero() -> None:
    assert bucket_of(-5) == 0
    histogram = Histogram()
    histogram.record(-0.5)
    assert histogram.distribution().maximum() == 0


def test_the_table_of_buckets_agrees_with_the_computation() -> None:
    assert [bucket_of(value) for value in range(DIRECT_VALUES)] == DIRECT_BUCKETS


def test_percentiles_are_within_three_percent_of_the_exact_ones() -> None:
    rng = random.Random(7)
    values = [rng.lognormvariate(-7, 2) for _ in range(20_000)]
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    values.sort()
    distribution = histogram.distribution()
    for fraction, measured in zip(PERCENTILES, distribution.percentiles(), strict=True):
        exact = values[int(fraction * len(values)) - 1]
        assert measured == pytest.approx(exact, rel=0.035, abs=1e-6)
    assert distribution.maximum() == pytest.approx(values[-1], rel=0.065)
    assert distribution.mean() == pytest.approx(sum(values) / len(values), rel=0.03)
    assert distribution.count == 20_000
    assert distribution.sum == pytest.approx(sum(values))


def test_a_value_stays_for_one_rotation_and_leaves_with_the_second() -> None:
    histogram = Histogram()
    histogram.record(0.5)
    histogram.rotate()
    histogram.record(0.001)
    assert histogram.distribution().maximum() == pytest.approx(0.5, rel=0.065)
    histogram.rotate()
    assert histogram.distribution().maximum() == pytest.approx(0.001, rel=0.065)
    histogram.rotate()
    empty = histogram.distribution()
    assert empty.window_count == 0
    assert empty.percentiles() == [0.0] * len(PERCENTILES)
    assert (empty.maximum(), empty.mean()) == (0.0, 0.0)


def test_count_and_sum_survive_rotations() -> None:
    histogram = Histogram()
    for _ in range(5):
        histogram.record(0.25)
        histogram.rotate()
    distribution = histogram.distribution()
    assert distribution.count == 5
    assert distribution.sum == 1.25


def test_zeros_pull_percentiles_down() -> None:
    histogram = Histogram()
    for _ in range(10):
        histogram.record(1.0)
    distribution = histogram.distribution().with_zeros(count=1000, window_count=90)
    assert distribution.count == 1010
    assert distribution.percentiles()[0] == 0
    assert distribution.percentiles()[2] == pytest.approx(1.0, rel=0.035)


def test_distributions_of_different_units_do_not_add() -> None:
    with pytest.raises(AssertionError, match="units"):
        Histogram().distribution() + Histogram(scale=1).distribution()
