"""Suppression: when changes leave the buffer, in which order, and what happens when it is full."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kaspar.streams import (
    BufferConfig,
    ProcessingError,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    serdes,
)
from kaspar.streams.dsl.streams_and_tables import KTable
from tests.unit.streams.windows.windowed_runs import AnyWindows, Run, joined, run

TUMBLING = TimeWindows.of_size(10)
FINAL = Suppressed.until_window_closes()


def final(windows: AnyWindows, records: Sequence[tuple[str, str, int]], suppressed: Suppressed = FINAL) -> Run:
    return run(
        windows, records, lambda windowed: windowed.reduce(lambda total, value: total + value).suppress(suppressed)
    )


# --- until the window closes ------------------------------------------------------------------------------------------


def test_a_window_has_one_result_when_stream_time_reaches_its_end() -> None:
    records = [("a", "x", 1), ("a", "y", 9), ("a", "z", 10)]
    assert final(TUMBLING, records[:2]).emitted == []
    assert final(TUMBLING, records).emitted == [("a", 0, 10, "xy", 9)]


def test_a_window_is_final_when_its_grace_period_is_over() -> None:
    records = [("a", "x", 1), ("b", "-", 14), ("a", "y", 2), ("b", "-", 15)]
    assert final(TUMBLING.grace(5), records[:3]).emitted == []
    assert final(TUMBLING.grace(5), records).emitted == [("a", 0, 10, "xy", 2)]


def test_results_leave_in_the_order_of_their_windows_and_then_of_their_keys() -> None:
    records = [("c", "1", 12), ("b", "2", 13), ("b", "3", 2), ("a", "4", 14), ("a", "5", 3), ("-", "-", 60)]
    assert [each[:4] for each in final(TUMBLING.grace(30), records).emitted] == [
        ("a", 0, 10, "5"),
        ("b", 0, 10, "3"),
        ("a", 10, 20, "4"),
        ("b", 10, 20, "2"),
        ("c", 10, 20, "1"),
    ]


def test_a_record_may_close_windows_that_were_not_touched_for_long() -> None:
    records = [("a", "x", 5), ("a", "y", 1000)]
    assert final(TUMBLING, records).emitted == [("a", 0, 10, "x", 5)]


def test_sliding_windows_are_final_at_their_end() -> None:
    windows = SlidingWindows.of_time_difference(10).grace(5)
    records = [("a", "x", 20), ("b", "-", 24)]
    assert final(windows, records).emitted == []
    assert final(windows, [*records, ("b", "-", 25)]).emitted == [("a", 10, 20, "x", 20)]


def test_sessions_are_final_when_gap_and_grace_are_over() -> None:
    windows = SessionWindows.of_inactivity_gap(10).grace(5)
    records = [("a", "x", 20), ("a", "y", 25), ("b", "-", 39)]
    assert final(windows, records).emitted == []
    assert final(windows, [*records, ("b", "-", 40)]).emitted == [("a", 20, 25, "xy", 25)]


def test_sessions_that_were_merged_are_never_emitted() -> None:
    windows = SessionWindows.of_inactivity_gap(10)
    records = [("a", "x", 20), ("a", "z", 24), ("a", "y", 22), ("b", "-", 90)]
    assert final(windows, records).emitted == [("a", 20, 24, "xzy", 24)]


def test_a_full_buffer_stops_the_program() -> None:
    suppressed = Suppressed.until_window_closes(BufferConfig.max_records(2).shut_down_when_full())
    records = [("a", "x", 1), ("b", "x", 1), ("a", "y", 2), ("c", "x", 2)]
    final(TUMBLING, records[:3], suppressed)
    with pytest.raises(ProcessingError, match="it has 3 records"):
        final(TUMBLING, records, suppressed)


def test_final_results_need_a_buffer_that_does_not_emit_early() -> None:
    with pytest.raises(TopologyError, match="shut_down_when_full"):
        Suppressed.until_window_closes(BufferConfig.max_records(10))


def test_a_table_without_windows_has_no_final_results() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="needs a windowed table"):
        builder.stream("in").group_by_key().count().suppress(FINAL)
    with pytest.raises(TopologyError, match="needs a windowed table"):
        builder.table("table").suppress(FINAL)


def test_a_table_that_is_regrouped_by_another_key_has_no_windows() -> None:
    builder = StreamsBuilder()
    windowed = builder.stream("in").group_by_key().windowed_by(TUMBLING).count()
    with pytest.raises(TopologyError, match="needs a windowed table"):
        windowed.group_by(lambda key, count: (key.key, count)).count().suppress(FINAL)


def test_the_windows_of_filtered_and_mapped_tables_are_known() -> None:
    records = [("a", "x", 1), ("b", "y", 2), ("c", "-", 30)]
    results = run(
        TUMBLING,
        records,
        lambda windowed: (
            windowed.reduce(lambda total, value: total + value)
            .filter(lambda key, value: value != "y")
            .map_values(str.upper)
            .suppress(FINAL)
        ),
    )
    assert results.emitted == [("a", 0, 10, "X", 1)]


# --- until a time limit -----------------------------------------------------------------------------------------------


def table_changes(
    suppressed: Suppressed,
    records: Sequence[tuple[str, str | None, int]],
    then: Callable[[KTable], KTable] | None = None,
) -> list[tuple[Any, Any, int]]:
    builder = StreamsBuilder()
    table = builder.table("in", "table").suppress(suppressed)
    (table if then is None else then(table)).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        for key, value, timestamp in records:
            source.pipe_input(key, value, timestamp)
        return [record[:3] for record in driver.create_output_topic("out").read_records_to_list()]


def test_a_change_waits_for_the_time_limit_and_later_ones_replace_it_in_its_place() -> None:
    records = [("a", "1", 0), ("b", "2", 5), ("a", "3", 9), ("b", "4", 10)]
    assert table_changes(Suppressed.until_time_limit(10), records[:3]) == []
    assert table_changes(Suppressed.until_time_limit(10), records) == [("a", "3", 9)]
    assert table_changes(Suppressed.until_time_limit(10), [*records, ("c", "5", 15)])[1:] == [("b", "4", 10)]


def test_a_key_that_was_emitted_waits_again() -> None:
    records = [("a", "1", 0), ("b", "-", 10), ("a", "2", 11), ("b", "-", 21)]
    assert table_changes(Suppressed.until_time_limit(10), records) == [("a", "1", 0), ("b", "-", 21), ("a", "2", 11)]


def test_a_limit_of_zero_emits_everything_at_once() -> None:
    records = [("a", "1", 0), ("a", "2", 5), ("b", "3", 5)]
    assert table_changes(Suppressed.until_time_limit(0), records) == records


def test_an_out_of_order_change_waits_from_its_own_time_on() -> None:
    records = [("a", "1", 50), ("b", "2", 42), ("c", "3", 40)]
    assert table_changes(Suppressed.until_time_limit(10), records) == [("c", "3", 40)]


def test_deletions_are_emitted() -> None:
    records = [("a", "1", 0), ("a", None, 5), ("b", "-", 10)]
    assert table_changes(Suppressed.until_time_limit(10), records) == [("a", None, 5)]


def test_a_full_buffer_emits_its_earliest_changes() -> None:
    suppressed = Suppressed.until_time_limit(1000, BufferConfig.max_records(2))
    records = [("b", "1", 5), ("a", "2", 5), ("a", "3", 7), ("c", "4", 1), ("d", "5", 9)]
    assert table_changes(suppressed, records) == [("c", "4", 1), ("a", "3", 7)]


def test_a_full_buffer_may_stop_the_program() -> None:
    suppressed = Suppressed.until_time_limit(1000, BufferConfig.max_records(1).shut_down_when_full())
    with pytest.raises(ProcessingError, match="is full"):
        table_changes(suppressed, [("a", "1", 5), ("b", "2", 5)])


def test_bytes_are_counted_as_in_kafka() -> None:
    """Of a change without old value: 8 bytes of buffer time, the key (1), the new value (3), timestamp and offset (16),
    the topic (2) and the partition (4)."""
    size = 8 + 1 + 3 + 16 + 2 + 4
    records = [("a", "123", 5), ("b", "456", 6)]
    assert table_changes(Suppressed.until_time_limit(1000, BufferConfig.max_bytes(2 * size)), records) == []
    assert table_changes(Suppressed.until_time_limit(1000, BufferConfig.max_bytes(2 * size - 1)), records) == [
        ("a", "123", 5)
    ]


def test_both_limits_hold_at_once() -> None:
    suppressed = Suppressed.until_time_limit(1000, BufferConfig.max_bytes(10_000).with_max_records(1))
    assert table_changes(suppressed, [("a", "1", 5), ("b", "2", 6)]) == [("a", "1", 5)]


def test_limits_must_be_positive() -> None:
    with pytest.raises(TopologyError, match="at least 1"):
        BufferConfig.max_records(0)


def test_headers_of_the_last_change_are_emitted() -> None:
    builder = StreamsBuilder()
    builder.table("in", "table").suppress(Suppressed.until_time_limit(10)).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        source.pipe_input("a", "1", 0, [("n", b"1")])
        source.pipe_input("a", "2", 1, [("n", b"2"), ("none", None)])
        source.pipe_input("b", "3", 10, [("n", b"3")])
        record = driver.create_output_topic("out").read_record()
    assert (record.value, tuple(record.headers)) == ("2", (("n", b"2"), ("none", None)))


def test_a_suppressed_table_is_regrouped_with_its_old_values() -> None:
    records = [("a", "x", 0), ("b", "x", 20), ("a", "y", 30), ("b", "x", 60)]
    counted = table_changes_counted(records)
    assert counted == [("x", 1), ("x", 2), ("x", 1), ("y", 1), ("x", 1)]


def table_changes_counted(records: Sequence[tuple[str, str, int]]) -> list[tuple[Any, Any]]:
    builder = StreamsBuilder()
    table = builder.table("in", "table").suppress(Suppressed.until_time_limit(10))
    table.group_by(lambda key, value: (value, value)).count("counts").to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        for key, value, timestamp in records:
            source.pipe_input(key, value, timestamp)
            source.pipe_input("tick", None, timestamp + 10)
        return driver.create_output_topic("out", value_serde=serdes.long()).read_key_values_to_list()


def test_generated_names_are_kafkas() -> None:
    builder = StreamsBuilder()
    builder.table("in", "table").suppress(Suppressed.until_time_limit(10)).to_stream().to("out")
    names = [store.name for store in builder.build().stores]
    assert names == ["table", "KTABLE-SUPPRESS-STATE-STORE-0000000003"]


def test_a_named_suppression_names_its_store() -> None:
    builder = StreamsBuilder()
    builder.table("in", "table").suppress(Suppressed.until_time_limit(10), name="wait").to_stream().to("out")
    assert [store.name for store in builder.build().stores] == ["table", "wait-store"]


def test_unsuppressed_results_are_the_same_in_the_end() -> None:
    records = [("a", "1", 3), ("b", "2", 12), ("a", "3", 8), ("a", "4", 15), ("b", "5", 40)]
    windows = TUMBLING.grace(10)
    suppressed = final(windows, [*records, ("-", "-", 1000)]).last_results
    assert suppressed == joined(windows, records).last_results
