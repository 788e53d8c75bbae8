"""Numbers over time in little memory."""

from kaspar.monitor.series import Series


def test_rows_come_back_with_their_times_and_unknown_values() -> None:
    series = Series(keep_ms=1_000, capacity=10, columns=2)
    series.append(1, 5, None)
    series.append(2, 6, 0.5)
    assert series.since(0) == [(1, (5.0, None)), (2, (6.0, 0.5))]
    assert series.since(2) == [(2, (6.0, 0.5))]
    assert series.last() == (2, (6.0, 0.5))


def test_old_rows_expire() -> None:
    series = Series(keep_ms=100, capacity=1_000)
    for at_ms in range(0, 1_000, 10):
        series.append(at_ms, at_ms)
    assert [at_ms for at_ms, _ in series.since(0)] == list(range(890, 1_000, 10))


def test_a_full_series_keeps_recent_rows_and_thins_out_older_ones() -> None:
    series = Series(keep_ms=10**9, capacity=100)
    for at_ms in range(10_000):
        series.append(at_ms, at_ms)
    rows = [at_ms for at_ms, _ in series.since(0)]
    assert len(rows) <= 100
    assert rows[-50:] == list(range(9_950, 10_000))
    assert rows[0] < 1_000
    assert all(value == (at_ms,) for at_ms, value in series.since(0))


def test_a_clock_that_is_set_back_adds_no_rows() -> None:
    series = Series(keep_ms=1_000, capacity=10)
    for at_ms in (5, 4, 5, 6):
        series.append(at_ms, at_ms)
    assert [at_ms for at_ms, _ in series.since(0)] == [5, 6]


def test_an_empty_series_has_no_last_row() -> None:
    assert Series(keep_ms=1, capacity=1).last() is None
