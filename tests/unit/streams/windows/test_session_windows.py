"""Sessions: how they grow and merge, what they emit, and when a record is too late for one."""

from kaspar.streams import SessionWindows, StreamsBuilder, TopologyTestDriver, serdes
from tests.unit.streams.windows.windowed_runs import counts, joined, run

SESSIONS = SessionWindows.of_inactivity_gap(10).grace(100)


def test_a_record_begins_a_session_of_one_point() -> None:
    assert counts(SESSIONS, [20]).results == [(20, 20, 1)]


def test_a_session_that_grows_is_deleted_before_the_new_one_is_emitted() -> None:
    assert counts(SESSIONS, [20, 25]).results == [(20, 20, 1), (20, 20, None), (20, 25, 2)]


def test_records_exactly_the_gap_apart_are_in_one_session() -> None:
    assert counts(SESSIONS, [20, 30]).last_results == {("a", 20, 30): 2}
    assert counts(SESSIONS, [20, 31]).last_results == {("a", 20, 20): 1, ("a", 31, 31): 1}


def test_a_record_of_the_same_time_updates_the_session_without_deleting_it() -> None:
    assert counts(SESSIONS, [20, 20]).results == [(20, 20, 1), (20, 20, 2)]


def test_a_record_inside_a_session_deletes_it_and_emits_it_again() -> None:
    assert counts(SESSIONS, [20, 28, 25]).results[3:] == [(20, 28, None), (20, 28, 3)]


def test_a_record_merges_the_sessions_on_both_of_its_sides() -> None:
    records = [("a", "1", 20), ("a", "3", 40), ("a", "2", 30)]
    assert joined(SESSIONS, records).emitted == [
        ("a", 20, 20, "1", 20),
        ("a", 40, 40, "3", 40),
        ("a", 20, 20, None, 20),
        ("a", 40, 40, None, 40),
        ("a", 20, 40, "132", 40),
    ]


def test_the_timestamp_of_a_session_is_its_end() -> None:
    assert [each.timestamp for each in counts(SESSIONS, [20, 15]).emitted] == [20, 20, 20]


def test_sessions_of_other_keys_are_left_alone() -> None:
    records = [("a", "1", 20), ("ab", "2", 22), ("a", "3", 24)]
    assert joined(SESSIONS, records).last_results == {("a", 20, 24): "13", ("ab", 22, 22): "2"}


def test_aggregates_are_merged_by_the_merger_in_the_order_of_their_sessions() -> None:
    records = [("a", "x", 40), ("a", "y", 20), ("a", "z", 30)]
    merged = run(
        SESSIONS,
        records,
        lambda windowed: windowed.aggregate(
            lambda: "", lambda key, value, total: total + value, lambda key, one, other: f"({one}|{other})"
        ),
    )
    assert merged.last_results == {("a", 20, 40): "((|y)|x)z"}


def test_a_record_is_late_when_stream_time_has_passed_its_session_by_gap_and_grace() -> None:
    windows = SessionWindows.of_inactivity_gap(10).grace(5)
    in_time = joined(windows, [("a", "x", 100), ("b", "y", 85)])
    assert in_time.last_results == {("a", 100, 100): "x", ("b", 85, 85): "y"}
    late = joined(windows, [("a", "x", 100), ("b", "y", 84)], config={"kaspar.late.topic.name": "late"})
    assert late.last_results == {("a", 100, 100): "x"}
    assert late.dropped == {"late": 1}
    assert late.driver.create_output_topic("late").read_record()[:3] == ("b", "y", 84)


def test_a_late_record_is_accepted_if_it_extends_an_open_session() -> None:
    windows = SessionWindows.of_inactivity_gap(10)
    records = [("a", "1", 92), ("b", "-", 100), ("a", "2", 83)]
    assert joined(windows, records).last_results[("a", 83, 92)] == "12"
    assert joined(windows, records[1:]).dropped == {"late": 1}


def test_records_without_key_are_dropped_and_records_without_value_are_aggregated() -> None:
    records = [(None, "x", 1), ("a", None, 1)]
    counted = run(SESSIONS, records, lambda windowed: windowed.count(), values=serdes.long())
    assert counted.results == [(1, 1, 1)]
    assert counted.dropped == {"null-key": 1}


def test_the_store_has_the_sessions_of_a_key() -> None:
    store = counts(SESSIONS, [20, 25, 60]).driver.store("windowed")
    assert [(tuple(key.window), count) for key, count in store.fetch("a")] == [((20, 25), 2), ((60, 60), 1)]


def test_stores_keep_sessions_for_the_gap_and_the_grace_period() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SessionWindows.of_inactivity_gap(10).grace(5)).count("sessions")
    (store,) = builder.build().stores
    assert store.retention_ms == 15


def test_results_have_no_headers() -> None:
    """As in Kafka, where other aggregates have those of the last record."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SESSIONS).count().to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 5, [("trace", b"1")])
        assert [headers for _, (*_, headers, _) in driver.produced] == [None]
