"""Sliding windows: which windows a record creates and updates, in every order of arrival."""

import pytest

from kaspar.streams import SlidingWindows, StreamsBuilder, TopologyError
from tests.unit.streams.windows.windowed_runs import counts, joined

WINDOWS = SlidingWindows.of_time_difference(10).grace(100)


def test_a_record_creates_its_left_window() -> None:
    assert counts(WINDOWS, [20]).results == [(10, 20, 1)]


def test_a_later_record_creates_the_right_window_of_the_one_before_it_and_its_own_left_one() -> None:
    assert counts(WINDOWS, [20, 25]).results == [(10, 20, 1), (21, 31, 1), (15, 25, 2)]


def test_a_record_that_is_further_away_than_the_difference_has_only_its_left_window() -> None:
    assert counts(WINDOWS, [20, 31]).results == [(10, 20, 1), (21, 31, 1)]


def test_a_record_one_millisecond_further_away_creates_no_right_window_for_the_one_before() -> None:
    assert counts(WINDOWS, [20, 32]).results == [(10, 20, 1), (22, 32, 1)]


def test_records_exactly_the_difference_apart_share_a_window() -> None:
    assert counts(WINDOWS, [20, 30]).results == [(10, 20, 1), (21, 31, 1), (20, 30, 2)]


def test_records_of_the_same_time_update_the_same_windows() -> None:
    assert counts(WINDOWS, [20, 20, 20]).results == [(10, 20, 1), (10, 20, 2), (10, 20, 3)]


def test_a_record_of_the_same_time_updates_all_windows_around_it() -> None:
    assert counts(WINDOWS, [20, 25, 25]).results[3:] == [(21, 31, 2), (15, 25, 3)]


def test_an_out_of_order_record_gets_a_right_window_with_what_is_after_it() -> None:
    assert counts(WINDOWS, [25, 20]).results == [(15, 25, 1), (15, 25, 2), (10, 20, 1), (21, 31, 1)]


def test_an_out_of_order_record_between_two_updates_their_windows() -> None:
    records = [("a", "1", 20), ("a", "3", 26), ("a", "2", 23)]
    assert joined(WINDOWS, records).last_results == {
        ("a", 10, 20): "1",
        ("a", 21, 31): "32",
        ("a", 16, 26): "132",
        ("a", 13, 23): "12",
        ("a", 24, 34): "3",
    }


def test_the_right_window_of_an_out_of_order_record_is_emitted_with_the_time_of_the_later_record() -> None:
    assert counts(WINDOWS, [25, 20]).emitted[-1] == ("a", 21, 31, 1, 25)


def test_early_records_share_the_window_that_begins_at_zero() -> None:
    assert counts(WINDOWS, [3, 8]).results == [(0, 10, 1), (4, 14, 1), (0, 10, 2)]


def test_an_early_out_of_order_record_gets_its_right_window() -> None:
    assert counts(WINDOWS, [8, 3]).results == [(0, 10, 1), (4, 14, 1), (0, 10, 2)]


def test_early_records_between_others() -> None:
    records = [("a", "1", 2), ("a", "3", 8), ("a", "2", 5)]
    assert joined(WINDOWS, records).last_results == {
        ("a", 0, 10): "132",
        ("a", 3, 13): "32",
        ("a", 6, 16): "3",
    }


def test_a_record_at_time_zero() -> None:
    assert counts(WINDOWS, [0, 0, 5]).results == [(0, 10, 1), (0, 10, 2), (1, 11, 1), (0, 10, 3)]


def test_a_record_at_the_difference_ends_the_shared_window() -> None:
    assert counts(WINDOWS, [4, 10]).results == [(0, 10, 1), (0, 10, 2), (5, 15, 1)]


def test_a_record_is_late_when_the_latest_window_it_could_be_in_is_closed() -> None:
    """With a grace of 5, windows that end before 100 - 5 are closed at 100; the last one around a record at 84 begins
    with it and ends at 94."""
    windows = SlidingWindows.of_time_difference(10).grace(5)
    late = counts(windows, [100, 84], config={"kaspar.late.topic.name": "late"})
    assert late.dropped == {"late": 1}
    assert late.driver.create_output_topic("late").read_record().timestamp == 84


def test_a_window_accepts_records_as_long_as_stream_time_less_grace_has_not_passed_its_end() -> None:
    windows = SlidingWindows.of_time_difference(10).grace(5)
    assert counts(windows, [100, 95]).results[1:] == [(90, 100, 2), (85, 95, 1), (96, 106, 1)]
    late = counts(windows, [100, 94])
    assert late.results[1:] == [(90, 100, 2), (95, 105, 1)]
    assert late.dropped == {"late": 1}  # its left window is closed


def test_a_record_whose_windows_are_all_closed_is_late_even_if_a_later_window_could_be_open() -> None:
    windows = SlidingWindows.of_time_difference(10).grace(5)
    late = counts(windows, [100, 88], config={"kaspar.late.topic.name": "late"})
    assert late.results == [(90, 100, 1)]
    assert late.dropped == {"late": 1}
    assert not late.driver.create_output_topic("late").is_empty()


def test_records_without_key_or_value_are_dropped() -> None:
    assert joined(WINDOWS, [(None, "x", 20), ("a", None, 20)]).dropped == {"null-key-or-value": 2}


def test_stores_keep_windows_for_twice_the_difference_and_the_grace_period() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SlidingWindows.of_time_difference(10).grace(5)).count("windowed")
    (store,) = builder.build().stores
    assert (store.retention_ms, store.window_size_ms) == (25, 10)


def test_a_difference_of_zero_is_refused() -> None:
    with pytest.raises(TopologyError, match="larger than zero"):
        SlidingWindows.of_time_difference(0)
