"""Windows against brute force: after every record, the table is what its definition says."""

from collections import defaultdict
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from kaspar.streams import SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows, TopologyTestDriver
from tests.unit.streams.windows.windowed_runs import AnyWindows, joined, pipe

TIMES = st.lists(st.integers(0, 60), max_size=14)
KEYED_TIMES = st.lists(st.tuples(st.sampled_from(["a", "ab"]), st.integers(0, 60)), max_size=14)


def numbered(times: Sequence[int]) -> list[tuple[str, str, int]]:
    """Each value is a letter of its own, so that a result shows what is in it."""
    return [("a", chr(97 + number), time) for number, time in enumerate(times)]


@given(TIMES, st.integers(1, 20))
@example([5, 15, 10, 0], 10)
def test_every_set_of_records_that_fit_into_a_sliding_window_has_one(times: list[int], difference_ms: int) -> None:
    windows = SlidingWindows.of_time_difference(difference_ms).grace(1000)
    driver = driver_of(windows)
    table: dict[int, str] = {}
    for count, record in enumerate(numbered(times), 1):
        for update in pipe(driver, windows, [record]):
            assert update.end == update.start + difference_ms
            table[update.start] = update.value
        assert {start: sorted(values) for start, values in table.items()} == sliding(times[:count], difference_ms)


def sliding(times: Sequence[int], difference_ms: int) -> dict[int, list[str]]:
    starts = {max(0, time - difference_ms) for time in times} | {time + 1 for time in times}
    contents = {
        start: [chr(97 + number) for number, time in enumerate(times) if start <= time <= start + difference_ms]
        for start in starts
    }
    return {start: values for start, values in contents.items() if values}


@given(TIMES, st.integers(1, 20), st.integers(0, 30))
def test_a_closed_sliding_window_never_changes(times: list[int], difference_ms: int, grace_ms: int) -> None:
    windows = SlidingWindows.of_time_difference(difference_ms).grace(grace_ms)
    driver, stream_time = driver_of(windows), -1
    for record in numbered(times):
        stream_time = max(stream_time, record[2])
        assert all(update.end >= stream_time - grace_ms for update in pipe(driver, windows, [record]))


@given(KEYED_TIMES, st.integers(1, 20))
def test_records_at_most_the_gap_apart_are_in_one_session(records: list[tuple[str, int]], gap_ms: int) -> None:
    windows = SessionWindows.of_inactivity_gap(gap_ms).grace(1000)
    values = [(key, chr(97 + number), time) for number, (key, time) in enumerate(records)]
    found = {window: sorted(value) for window, value in joined(windows, values).last_results.items()}
    assert found == sessions(values, gap_ms)


def sessions(records: Sequence[tuple[str, str, int]], gap_ms: int) -> dict[tuple[str, int, int], list[str]]:
    by_key = defaultdict(list)
    for key, value, time in sorted(records, key=lambda record: record[2]):
        by_key[key].append((time, value))
    found = {}
    for key, values in by_key.items():
        session = [values[0]]
        for each in [*values[1:], None]:
            if each is not None and each[0] - session[-1][0] <= gap_ms:
                session.append(each)
                continue
            found[key, session[0][0], session[-1][0]] = sorted(value for _, value in session)
            session = [] if each is None else [each]
    return found


@given(TIMES, st.integers(1, 20), st.integers(0, 30))
def test_only_records_of_sessions_that_are_closed_are_late(times: list[int], gap_ms: int, grace_ms: int) -> None:
    windows = SessionWindows.of_inactivity_gap(gap_ms).grace(grace_ms)
    results = joined(windows, numbered(times))
    table, late = sessions_with_grace(times, gap_ms, grace_ms)
    assert {window[1:]: sorted(value) for window, value in results.last_results.items()} == table
    assert results.dropped.get("late", 0) == late


def sessions_with_grace(
    times: Sequence[int], gap_ms: int, grace_ms: int
) -> tuple[dict[tuple[int, int], list[str]], int]:
    """The sessions after all records, and how many records were late. A session that the store no longer returns is
    not merged, but stays in the results."""
    table: dict[tuple[int, int], list[str]] = {}
    stream_time = stored_time = -1
    late = 0
    for number, time in enumerate(times):
        stream_time = max(stream_time, time)
        near = [
            (start, end)
            for start, end in table
            if end >= time - gap_ms and start <= time + gap_ms and end > stored_time - gap_ms - grace_ms
        ]
        merged = min([time, *(start for start, _ in near)]), max([time, *(end for _, end in near)])
        if merged[1] < stream_time - gap_ms - grace_ms:
            late += 1
            continue
        stored_time = max(stored_time, merged[1])
        values = sorted(value for window in near for value in table.pop(window))
        table[merged] = sorted([*values, chr(97 + number)])
    return table, late


@given(TIMES, st.integers(1, 20), st.integers(1, 20), st.integers(0, 30))
def test_time_windows_have_the_records_that_arrive_before_they_close(
    times: list[int], size_ms: int, advance_ms: int, grace_ms: int
) -> None:
    windows = TimeWindows.of_size(size_ms).advance_by(min(size_ms, advance_ms)).grace(grace_ms)
    expected: dict[tuple[str, int, int], str] = defaultdict(str)
    stream_time = -1
    for number, time in enumerate(times):
        stream_time = max(stream_time, time)
        for start in range(0, time + 1, windows.advance_ms):
            if start <= time < start + size_ms and start + size_ms + grace_ms > stream_time:
                expected["a", start, start + size_ms] += chr(97 + number)
    assert joined(windows, numbered(times)).last_results == expected


def driver_of(windows: AnyWindows) -> TopologyTestDriver:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(windows).reduce(lambda total, value: total + value, "windowed").to_stream().to("out")
    return TopologyTestDriver(builder.build())
