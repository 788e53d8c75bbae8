"""Tumbling and hopping windows: which windows a record updates, in which order, and when it is late."""

from typing import Any

import pytest

from kaspar.streams import StreamsBuilder, TimeWindows, Topology, TopologyError, serdes
from kaspar.streams.windows import Window, Windowed
from tests.unit.streams.windows.windowed_runs import counts, joined, run

TUMBLING = TimeWindows.of_size(10)
HOPPING = TimeWindows.of_size(10).advance_by(4)


def test_a_record_at_the_end_of_a_window_belongs_to_the_next_one() -> None:
    assert counts(TUMBLING, [0, 9, 10]).results == [(0, 10, 1), (0, 10, 2), (10, 20, 1)]


def test_keys_have_windows_of_their_own() -> None:
    emitted = joined(TUMBLING, [("a", "x", 1), ("b", "y", 2), ("a", "z", 3)]).emitted
    assert emitted == [("a", 0, 10, "x", 1), ("b", 0, 10, "y", 2), ("a", 0, 10, "xz", 3)]


def test_a_result_has_the_latest_timestamp_of_its_records() -> None:
    assert [each.timestamp for each in counts(TUMBLING, [7, 3, 7]).emitted] == [7, 7, 7]


def test_a_window_accepts_records_until_stream_time_reaches_its_end() -> None:
    counted = counts(TUMBLING, [1, 9, 2, 10, 9])
    assert counted.results == [(0, 10, 1), (0, 10, 2), (0, 10, 3), (10, 20, 1)]
    assert counted.dropped == {"late": 1}


def test_grace_keeps_a_window_open_until_its_last_millisecond() -> None:
    counted = counts(TUMBLING.grace(5), [1, 14, 2, 15, 3])
    assert counted.results == [(0, 10, 1), (10, 20, 1), (0, 10, 2), (10, 20, 2)]
    assert counted.dropped == {"late": 1}


def test_stream_time_is_that_of_all_keys() -> None:
    results = joined(TUMBLING, [("a", "x", 1), ("b", "y", 20), ("a", "z", 2)])
    assert results.last_results == {("a", 0, 10): "x", ("b", 20, 30): "y"}


def test_a_dropped_record_does_not_hold_stream_time_back() -> None:
    counted = counts(TUMBLING, [30, 1, 29, 30])
    assert counted.results == [(30, 40, 1), (30, 40, 2)]
    assert counted.dropped == {"late": 2}


def test_hopping_windows_are_updated_from_the_earliest_to_the_latest() -> None:
    assert counts(HOPPING, [9]).results == [(0, 10, 1), (4, 14, 1), (8, 18, 1)]


def test_hopping_windows_begin_at_zero_at_the_earliest() -> None:
    assert counts(HOPPING, [1, 5]).results == [(0, 10, 1), (0, 10, 2), (4, 14, 1)]


def test_a_record_may_be_late_for_some_of_its_hopping_windows() -> None:
    counted = counts(HOPPING, [12, 9], config={"kaspar.late.topic.name": "late"})
    assert counted.results == [(4, 14, 1), (8, 18, 1), (12, 22, 1), (4, 14, 2), (8, 18, 2)]
    assert counted.dropped == {"late": 1}
    assert counted.driver.create_output_topic("late").is_empty()


def test_a_late_record_is_written_to_the_topic_for_late_records_as_it_was_read() -> None:
    results = joined(TUMBLING, [("a", "x", 20), ("b", "y", 3)], config={"kaspar.late.topic.name": "late"})
    late = results.driver.create_output_topic("late").read_record()
    assert late[:3] == ("b", "y", 3)
    assert dict(late.headers) == {
        "__streams.late.topic": b"in",
        "__streams.late.partition": b"0",
        "__streams.late.offset": b"1",
    }


def test_records_without_key_are_dropped_and_records_without_value_are_aggregated() -> None:
    records = [(None, "x", 1), ("a", None, 1), ("a", "x", 2)]
    counted = run(TUMBLING, records, lambda windowed: windowed.count(), values=serdes.long())
    assert counted.results == [(0, 10, 1), (0, 10, 2)]
    assert counted.dropped == {"null-key": 1}


def test_an_aggregate_may_delete_its_window_and_begin_again() -> None:
    def add(key: str, value: str, total: str) -> str | None:
        return None if value == "-" else total + value

    records = [("a", "x", 5), ("a", "-", 3), ("a", "y", 4)]
    emitted = run(TUMBLING, records, lambda windowed: windowed.aggregate(str, add, "windowed")).emitted
    assert emitted == [("a", 0, 10, "x", 5), ("a", 0, 10, None, 5), ("a", 0, 10, "y", 4)]


def test_a_deletion_of_a_window_that_nobody_has_seen_is_emitted() -> None:
    emitted = run(TUMBLING, [("a", "x", 5)], lambda windowed: windowed.aggregate(str, lambda *_: None)).emitted
    assert emitted == [("a", 0, 10, None, 5)]


def test_the_store_has_the_windows_of_a_key() -> None:
    store = counts(TUMBLING.grace(100), [1, 12, 13]).driver.store("windowed")
    assert store.fetch("a", 10).value == 2
    assert [(start, value.value) for start, value in store.fetch("a", 0, 20)] == [(0, 1), (10, 2)]
    assert [key for key, _ in store.all()] == [Windowed("a", Window(0, 10)), Windowed("a", Window(10, 20))]


def test_stores_keep_windows_for_their_size_and_grace_period() -> None:
    (store,) = topology_of(TimeWindows.of_size(100).grace(20)).stores
    assert (store.retention_ms, store.window_size_ms) == (120, 100)


def test_a_longer_retention_may_be_given() -> None:
    (store,) = topology_of(TUMBLING, retention=500).stores
    assert store.retention_ms == 500


def test_a_retention_that_is_shorter_than_size_and_grace_is_refused() -> None:
    with pytest.raises(TopologyError, match="too short"):
        topology_of(TUMBLING.grace(5), retention=14)


def test_generated_names_are_kafkas() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(TUMBLING).count().to_stream().to("out")
    topology = builder.build()
    assert [store.name for store in topology.stores] == ["KSTREAM-AGGREGATE-STATE-STORE-0000000001"]
    assert "KSTREAM-AGGREGATE-0000000002" in topology.describe()


def test_a_windowed_stream_of_something_else_is_refused() -> None:
    with pytest.raises(TopologyError, match="not int"):
        StreamsBuilder().stream("in").group_by_key().windowed_by(10)  # type: ignore[call-overload]


def topology_of(windows: TimeWindows, **options: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(windows).count("windowed", **options)
    return builder.build()
