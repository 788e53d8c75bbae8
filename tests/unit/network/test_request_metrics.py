"""RequestMetrics: requests with an immediate response and requests that waited record the same seven times."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.metrics import RequestMetrics, RequestMetricsByApi
from kaspar.network.request_metrics import REQUEST_TIMES


def test_an_inline_request_has_equal_local_and_total_time_and_zeros_elsewhere() -> None:
    metrics = RequestMetrics("Produce")
    metrics.inline(13, 0.002, 500)
    times = metrics.times()
    assert set(times) == set(REQUEST_TIMES)
    for name, distribution in times.items():
        expected = 0.002 if name in ("LocalTimeMs", "TotalTimeMs") else 0.0
        assert distribution.count == 1, name
        assert distribution.sum == expected, name
        assert distribution.percentiles()[0] == pytest.approx(expected, rel=0.035), name


def test_a_delayed_request_was_worked_on_and_waited_and_its_total_is_the_sum() -> None:
    metrics = RequestMetrics("FetchConsumer")
    metrics.delayed(18, 0.002, 0.5, 100)
    times = metrics.times()
    sums = [times[name].sum for name in REQUEST_TIMES]
    assert sums == pytest.approx([0, 0.002, 0.5, 0, 0, 0, 0.502])
    assert all(times[name].count == 1 for name in REQUEST_TIMES)


def test_inline_and_delayed_requests_share_percentiles() -> None:
    metrics = RequestMetrics("Produce")
    for _ in range(90):
        metrics.inline(13, 0.001, 10)
    for _ in range(10):
        metrics.delayed(13, 0.001, 0.1, 10)
    times = metrics.times()
    p50, _, p95, *_ = times["RemoteTimeMs"].percentiles()
    assert p50 == 0
    assert p95 == pytest.approx(0.1, rel=0.035)
    assert times["RemoteTimeMs"].count == times["TotalTimeMs"].count == 100


@pytest.mark.parametrize("seconds", [0.0, 0.000001, 0.016383, 0.016384, 3.0, 1e6])
@pytest.mark.parametrize("size", [0, 16_383, 16_384, 100_000_000])
def test_inline_records_as_the_histogram_does(seconds: float, size: int) -> None:
    inline, delayed = RequestMetrics("A"), RequestMetrics("B")
    inline.inline(0, seconds, size)
    delayed.delayed(0, seconds, 0, size)
    assert inline.times()["TotalTimeMs"].maximum() == delayed.times()["TotalTimeMs"].maximum()
    assert inline.request_bytes().maximum() == delayed.request_bytes().maximum()
    assert inline.request_bytes().sum == size


def test_requests_are_counted_by_version_and_errors_by_code() -> None:
    metrics = RequestMetrics("Metadata")
    metrics.inline(12, 0.001, 10)
    metrics.inline(12, 0.001, 10)
    metrics.delayed(4, 0, 0, 10)
    metrics.errors[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] += 4
    assert metrics.versions() == {4: 1, 12: 2}
    assert metrics.error_counts() == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 4}


def test_rotation_forgets_times_of_both_kinds_and_keeps_counts() -> None:
    metrics = RequestMetrics("Produce")
    metrics.inline(13, 0.1, 10)
    metrics.delayed(13, 0.1, 0.1, 10)
    metrics.rotate()
    metrics.rotate()
    for distribution in [*metrics.times().values(), metrics.request_bytes()]:
        assert distribution.window_count == 0
        assert distribution.count == 2


def test_fetch_is_the_sum_of_consumers_and_followers() -> None:
    by_api = RequestMetricsByApi()
    by_api.of("FetchConsumer").inline(17, 0.001, 10)
    by_api.of("FetchFollower").inline(17, 0.003, 20)
    by_api.of("FetchFollower").inline(16, 0.003, 20)
    by_api.of("FetchFollower").errors[ErrorCode.NOT_LEADER_OR_FOLLOWER] += 1
    by_api.of("Produce").inline(13, 1.0, 1)
    readings = {reading.name: reading for reading in by_api.read()}
    assert set(readings) == {"FetchConsumer", "FetchFollower", "Produce", "Fetch"}
    fetch = readings["Fetch"]
    assert fetch.versions == {16: 1, 17: 2}
    assert fetch.errors == {ErrorCode.NOT_LEADER_OR_FOLLOWER: 1}
    assert not readings["FetchFollower"].errors  # Kafka counts them for Fetch alone
    assert fetch.times["TotalTimeMs"].sum == pytest.approx(0.007)
    assert fetch.request_bytes.count == 3


def test_fetch_appears_with_consumers_alone() -> None:
    by_api = RequestMetricsByApi()
    by_api.of("FetchConsumer").inline(17, 0.001, 10)
    assert [reading.name for reading in by_api.read()] == ["FetchConsumer", "Fetch"]


def test_fetch_itself_cannot_be_written() -> None:
    with pytest.raises(AssertionError, match="FetchConsumer"):
        RequestMetricsByApi().of("Fetch")


def test_a_throttled_request_shows_its_throttle_time_and_the_others_zero() -> None:
    metrics = RequestMetrics("Produce")
    for _ in range(4):
        metrics.inline(13, 0.001, 10)
    metrics.throttled(2.0)
    throttled = metrics.times()["ThrottleTimeMs"]
    assert (throttled.count, throttled.sum) == (4, 2.0)
