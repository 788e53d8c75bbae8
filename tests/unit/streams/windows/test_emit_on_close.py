"""Emitting on window close: one result for each window, in order, when it is final."""

from collections.abc import Sequence
from typing import Any

import pytest

from kaspar.streams import EmitStrategy, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from kaspar.streams.dsl.streams_and_tables import KTable
from tests.unit.streams.windows.micro_batches import MicroBatches
from tests.unit.streams.windows.windowed_runs import AnyWindows, Emitted, joined, run

TUMBLING = TimeWindows.of_size(10)


def reduced_on_close(windowed: Any) -> KTable:
    table: KTable = windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).reduce(
        lambda total, value: total + value, "windowed"
    )
    return table


def on_close(windows: AnyWindows, records: Sequence[tuple[str, str | None, int]]) -> list[Emitted]:
    return run(windows, records, reduced_on_close).emitted


def test_a_window_is_emitted_when_stream_time_reaches_its_end() -> None:
    records = [("a", "x", 1), ("a", "y", 9), ("b", "z", 10)]
    assert on_close(TUMBLING, records[:2]) == []
    assert on_close(TUMBLING, records) == [("a", 0, 10, "xy", 9)]


def test_grace_is_waited_for() -> None:
    records = [("a", "x", 1), ("b", "-", 14), ("a", "y", 2), ("b", "-", 15)]
    assert on_close(TUMBLING.grace(5), records[:3]) == []
    assert on_close(TUMBLING.grace(5), records) == [("a", 0, 10, "xy", 2)]


def test_results_are_in_the_order_of_windows_and_keys() -> None:
    records = [("b", "1", 12), ("a", "2", 13), ("b", "3", 2), ("-", "-", 60)]
    emitted = on_close(TUMBLING.grace(30), records)
    assert [each[:4] for each in emitted] == [("b", 0, 10, "3"), ("a", 10, 20, "2"), ("b", 10, 20, "1")]


def test_no_window_is_lost_when_stream_time_jumps_over_the_retention() -> None:
    assert on_close(TUMBLING, [("a", "x", 1), ("a", "y", 10_000_000)]) == [("a", 0, 10, "x", 1)]


def test_hopping_windows_close_one_after_the_other() -> None:
    emitted = on_close(TimeWindows.of_size(10).advance_by(5), [("a", "x", 7), ("a", "y", 15), ("a", "z", 16)])
    assert [each[:4] for each in emitted] == [("a", 0, 10, "x"), ("a", 5, 15, "x")]


def test_sliding_windows_close_behind_their_inclusive_end() -> None:
    windows = SlidingWindows.of_time_difference(10)
    assert on_close(windows, [("a", "x", 20), ("b", "-", 20)]) == []
    assert on_close(windows, [("a", "x", 20), ("b", "-", 21)]) == [("a", 10, 20, "x", 20)]


def test_a_record_without_value_does_not_close_sliding_windows() -> None:
    assert on_close(SlidingWindows.of_time_difference(10), [("a", "x", 20), ("b", None, 90)]) == []


def test_sessions_close_when_gap_and_grace_are_over() -> None:
    windows = SessionWindows.of_inactivity_gap(10).grace(5)
    records = [("a", "x", 20), ("a", "y", 25), ("b", "-", 40)]
    assert on_close(windows, records) == []
    assert on_close(windows, [*records, ("b", "-", 41)]) == [("a", 20, 25, "xy", 25)]


def test_sessions_with_the_same_end_are_in_the_order_of_their_starts() -> None:
    windows = SessionWindows.of_inactivity_gap(10)
    records = [("b", "1", 15), ("a", "-", 20), ("b", "2", 20), ("c", "-", 90)]
    assert on_close(windows, records) == [("b", 15, 20, "12", 20), ("a", 20, 20, "-", 20)]


def test_merged_sessions_are_not_emitted() -> None:
    windows = SessionWindows.of_inactivity_gap(10)
    records = [("a", "1", 20), ("a", "3", 30), ("a", "2", 25), ("b", "-", 90)]
    assert on_close(windows, records) == [("a", 20, 30, "132", 30)]


def test_a_window_whose_result_was_deleted_is_not_emitted() -> None:
    def add(key: str, value: str, total: str) -> str | None:
        return None if value == "-" else total + value

    records = [("a", "x", 1), ("a", "-", 2), ("b", "y", 3), ("c", "z", 10)]
    results = run(
        TUMBLING,
        records,
        lambda windowed: windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).aggregate(str, add),
    )
    assert results.emitted == [("b", 0, 10, "y", 3)]


@pytest.mark.parametrize(
    "windows",
    [
        TUMBLING.grace(10),
        TimeWindows.of_size(10).advance_by(4).grace(10),
        SlidingWindows.of_time_difference(10).grace(20),
        SessionWindows.of_inactivity_gap(8).grace(20),
    ],
)
def test_final_results_are_the_last_updates_in_every_division_into_micro_batches(windows: AnyWindows) -> None:
    times = [5, 3, 17, 12, 9, 31, 14, 28, 60, 55, 75, 140]
    records = [("ab"[number % 2], str(number % 10), time) for number, time in enumerate(times)]
    end = ("-", "-", 1000)
    emitted = on_close(windows, [*records, end])
    assert {each[:3]: each.value for each in emitted} == joined(windows, records).last_results
    builder = StreamsBuilder()
    reduced_on_close(builder.stream("in").group_by_key().windowed_by(windows)).to_stream().to("out")
    batches = MicroBatches(builder.build())
    for record in [*records, end]:
        batches.run([record])
    assert [(value, time) for _, (_, value, time, *_) in batches.written] == [
        (each.value.encode(), each.timestamp) for each in emitted
    ]
