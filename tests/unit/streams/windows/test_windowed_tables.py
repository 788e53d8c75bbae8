"""Tables of windows: how their keys are written, and what can be done with them."""

import pickle
from typing import Any

import pytest

from kaspar.records.column_writing import murmur2
from kaspar.streams import (
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    Window,
    Windowed,
    serdes,
)
from kaspar.streams.dsl.streams_and_tables import KTable
from kaspar.streams.topology.context import Output

TUMBLING = TimeWindows.of_size(10)
SESSIONS = SessionWindows.of_inactivity_gap(10)
RECORDS = [("a", "x", 1), ("b", "y", 2), ("a", "z", 5), ("a", "x", 12)]


def counted(builder: StreamsBuilder, windows: Any = TUMBLING, **options: Any) -> KTable:
    table: KTable = builder.stream("in").group_by_key().windowed_by(windows).count("windowed", **options)
    return table


def outputs(builder: StreamsBuilder, config: dict[str, Any] | None = None) -> list[Output]:
    with TopologyTestDriver(builder.build(), config) as driver:
        source = driver.create_input_topic("in")
        for record in RECORDS:
            source.pipe_input(*record)
        return [output for topic, output in driver.produced if topic == "out"]


def pairs(builder: StreamsBuilder, values: Any = None) -> list[tuple[Any, Any]]:
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        for record in RECORDS:
            source.pipe_input(*record)
        return driver.create_output_topic("out", value_serde=values).read_key_values_to_list()


def test_a_windowed_key_is_the_key_and_the_start_of_its_window() -> None:
    builder = StreamsBuilder()
    counted(builder).to_stream().to("out")
    assert [key for key, *_ in outputs(builder)] == [
        b"a" + bytes(8),
        b"b" + bytes(8),
        b"a" + bytes(8),
        b"a" + (10).to_bytes(8),
    ]


def test_the_key_of_a_session_has_its_end_and_its_start() -> None:
    builder = StreamsBuilder()
    counted(builder, SESSIONS).to_stream().to("out")
    assert outputs(builder)[-1][0] == b"a" + (12).to_bytes(8) + (1).to_bytes(8)


def test_the_inner_keys_serde_may_be_the_programs_default() -> None:
    builder = StreamsBuilder()
    table = builder.stream("in").group_by(lambda key, value: len(value)).windowed_by(TUMBLING).count()
    table.to_stream().to("out")
    with TopologyTestDriver(builder.build(), {"default.key.serde": "integer"}) as driver:
        driver.create_input_topic("in").pipe_input(7, "four", 3)
        assert driver.produced[-1][1][0] == (4).to_bytes(4) + bytes(8)


def test_the_serde_of_a_grouping_is_that_of_its_windows() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(lambda key, value: 7, key_serde=serdes.integer())
    grouped.windowed_by(TUMBLING).count().to_stream().to("out")
    assert outputs(builder)[0][0] == (7).to_bytes(4) + bytes(8)


@pytest.mark.parametrize("windows", [TUMBLING, SlidingWindows.of_time_difference(10), SESSIONS])
def test_all_windows_of_a_key_are_written_to_the_partition_of_the_key(windows: Any) -> None:
    class Driver(TopologyTestDriver):
        def partition_count(self, topic: str) -> int:
            return 1000

    builder = StreamsBuilder()
    counted(builder, windows).to_stream().to("out")
    driver = Driver(builder.build())
    source = driver.create_input_topic("in")
    for record in RECORDS:
        source.pipe_input(*record)
    partitions = {output[0][:1]: output[4] for topic, output in driver.produced if output[0] is not None}
    assert partitions == {b"a": murmur2(b"a") % 1000, b"b": murmur2(b"b") % 1000}


def test_windowed_keys_of_an_explicit_serde_are_partitioned_by_the_inner_key() -> None:
    builder = StreamsBuilder()
    counted(builder).to_stream().to("out", key_serde=serdes.windowed(serdes.text(), 10))
    assert [output[4] for output in outputs(builder)] == [0, 0, 0, 0]  # the driver's topics have one partition


def test_a_partitioner_that_is_given_is_used() -> None:
    builder = StreamsBuilder()
    counted(builder).to_stream().to("out", partitioner=lambda topic, key, value, partitions: key.window.start)
    assert [output[4] for output in outputs(builder)] == [0, 0, 0, 10]


def test_plain_keys_are_left_to_the_default_partitioner() -> None:
    builder = StreamsBuilder()
    counted(builder).to_stream(lambda key, value: key.key).to("out", value_serde=serdes.long())
    assert [output[4] for output in outputs(builder)] == [None] * 4


def test_streams_of_windows_are_mapped_to_plain_keys() -> None:
    builder = StreamsBuilder()
    stream = counted(builder).to_stream()
    stream.map(lambda key, count: (f"{key.key}@{key.window.start}", str(count))).to("out")
    assert pairs(builder) == [("a@0", "1"), ("b@0", "1"), ("a@0", "2"), ("a@10", "1")]


def test_tables_of_windows_are_filtered_and_mapped() -> None:
    builder = StreamsBuilder()
    table = counted(builder).filter(lambda key, count: key.key == "a").map_values(lambda count: str(count))
    table.to_stream(lambda key, value: f"{key.key}@{key.window.start}").to("out")
    assert pairs(builder) == [("a@0", "1"), ("a@0", "2"), ("a@10", "1")]


def test_windows_are_regrouped_with_their_old_values() -> None:
    """The first count of a window has no old value, so that nothing is subtracted that was never added."""
    builder = StreamsBuilder()
    by_start = counted(builder).group_by(lambda key, count: (str(key.window.start), count), value_serde=serdes.long())
    by_start.reduce(lambda total, count: total + count, lambda total, count: total - count).to_stream().to("out")
    assert pairs(builder, serdes.long()) == [("0", 1), ("0", 2), ("0", 3), ("10", 1)]


@pytest.mark.parametrize("windows", [SlidingWindows.of_time_difference(10), SESSIONS])
def test_sliding_windows_and_sessions_are_regrouped_with_their_old_values(windows: Any) -> None:
    """What all windows have together is the sum of their last values."""
    builder = StreamsBuilder()
    together = counted(builder, windows).group_by(lambda key, count: ("all", count), value_serde=serdes.long())
    together.reduce(lambda total, count: total + count, lambda total, count: total - count).to_stream().to("out")
    last: dict[Any, int] = {}
    builder_of_table = StreamsBuilder()
    counted(builder_of_table, windows).to_stream().to("out")
    for key, value, *_ in outputs(builder_of_table):
        last[key] = 0 if value is None else int.from_bytes(value)
    assert pairs(builder, serdes.long())[-1] == ("all", sum(last.values()))


def test_a_session_of_one_point_that_is_updated_has_its_old_value() -> None:
    builder = StreamsBuilder()
    together = counted(builder, SESSIONS).group_by(lambda key, count: ("all", count), value_serde=serdes.long())
    together.reduce(lambda total, count: total + count, lambda total, count: total - count).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        for key in ("b", "a", "a"):
            source.pipe_input(key, "x", 5)
        assert driver.create_output_topic("out", value_serde=serdes.long()).read_values_to_list() == [1, 2, 3]


def test_tables_of_windows_are_looked_up_by_windowed_key() -> None:
    builder = StreamsBuilder()
    tumbling = counted(builder, TUMBLING.grace(100))
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        for record in RECORDS:
            source.pipe_input(*record)
        get = tumbling.node.getter(driver._parts[0].task.context)
        assert get(Windowed("a", Window(0, 10))) == (2, 5)
        assert get(Windowed("b", Window(10, 20))) is None


def test_cogroups_share_the_windows_of_one_store() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("in").group_by_key(), builder.stream("other").group_by_key()

    def add(key: str, value: str, total: str) -> str:
        return total + value

    table = left.cogroup(add).cogroup(right, add).windowed_by(TUMBLING.grace(20)).aggregate(str, "together")
    table.to_stream(lambda key, value: f"{key.key}@{key.window.start}").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "1", 3)
        driver.create_input_topic("other").pipe_input("a", "2", 4)
        driver.create_input_topic("other").pipe_input("a", "3", 14)
        driver.create_input_topic("in").pipe_input("a", "4", 5)
        assert driver.create_output_topic("out").read_key_values_to_list() == [
            ("a@0", "1"),
            ("a@0", "12"),
            ("a@10", "3"),
            ("a@0", "124"),
        ]


def test_cogroups_share_sessions() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("in").group_by_key(), builder.stream("other").group_by_key()

    def add(key: str, value: str, total: str) -> str:
        return total + value

    cogrouped = left.cogroup(add).cogroup(right, add).windowed_by(SESSIONS)
    table = cogrouped.aggregate(str, lambda key, one, other: one + other, "together")
    table.to_stream(lambda key, value: f"{key.key}@{key.window.start}-{key.window.end}").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "1", 3)
        driver.create_input_topic("other").pipe_input("a", "2", 9)
        assert driver.create_output_topic("out").read_key_values_to_list() == [
            ("a@3-3", "1"),
            ("a@3-3", None),
            ("a@3-9", "12"),
        ]


def test_topologies_with_windows_are_pickled() -> None:
    builder = StreamsBuilder()
    counted(builder, SESSIONS).to_stream().to("out")
    copied = pickle.loads(pickle.dumps(builder.build()))
    with TopologyTestDriver(copied) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 5)
        assert len(driver.produced) == 1
