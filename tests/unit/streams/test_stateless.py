"""Operators that process one record at a time."""

from collections.abc import Callable
from typing import Any

from kaspar.streams import KStream, StreamsBuilder, TopologyTestDriver

Pairs = list[tuple[Any, Any]]


def results(build: Callable[[KStream], KStream], records: Pairs) -> Pairs:
    builder = StreamsBuilder()
    build(builder.stream("in")).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values(records)
        return driver.create_output_topic("out").read_key_values_to_list()


def test_map_changes_key_and_value() -> None:
    assert results(lambda stream: stream.map(lambda key, value: (value, key)), [("a", "x")]) == [("x", "a")]


def test_map_values_keeps_keys_and_may_see_them() -> None:
    records = [("a", "x"), (None, "y")]
    assert results(lambda stream: stream.map_values(str.upper), records) == [("a", "X"), (None, "Y")]
    joined = results(lambda stream: stream.map_values(lambda key, value: f"{key}{value}", with_key=True), records)
    assert joined == [("a", "ax"), (None, "Noney")]


def test_flat_map_emits_any_number_of_records_in_order() -> None:
    twice = results(lambda stream: stream.flat_map(lambda key, value: [(key, value), (value, key)]), [("a", "x")])
    assert twice == [("a", "x"), ("x", "a")]
    assert results(lambda stream: stream.flat_map_values(lambda value: []), [("a", "x")]) == []
    with_key = results(
        lambda stream: stream.flat_map_values(lambda key, value: [key, value], with_key=True), [("a", "x")]
    )
    assert with_key == [("a", "a"), ("a", "x")]


def test_filter_and_filter_not_are_opposites() -> None:
    records = [("a", "1"), ("b", "2")]
    assert results(lambda stream: stream.filter(lambda key, value: value == "1"), records) == [("a", "1")]
    assert results(lambda stream: stream.filter_not(lambda key, value: value == "1"), records) == [("b", "2")]


def test_select_key_keeps_values() -> None:
    assert results(lambda stream: stream.select_key(lambda key, value: value), [("a", "x")]) == [("x", "x")]


def test_peek_sees_every_record_and_passes_it_on() -> None:
    seen: Pairs = []
    assert results(lambda stream: stream.peek(lambda *pair: seen.append(pair)), [("a", "x")]) == [("a", "x")] == seen


def test_foreach_ends_a_stream() -> None:
    seen: Pairs = []
    builder = StreamsBuilder()
    builder.stream("in").foreach(lambda *pair: seen.append(pair))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")
        assert driver.produced == []
    assert seen == [("a", "x")]


def test_a_record_takes_the_first_branch_that_matches() -> None:
    builder = StreamsBuilder()
    branches = (
        builder.stream("in")
        .split()
        .branch(lambda key, value: value < "c", "low")
        .branch(lambda key, value: value < "m", "middle")
        .default_branch("high")
    )
    assert list(branches) == ["low", "middle", "high"]
    for name, branch in branches.items():
        branch.to(name)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("1", "a"), ("2", "d"), ("3", "z")])
        read = {name: driver.create_output_topic(name).read_values_to_list() for name in branches}
    assert read == {"low": ["a"], "middle": ["d"], "high": ["z"]}


def test_without_a_default_branch_other_records_are_dropped() -> None:
    builder = StreamsBuilder()
    branches = builder.stream("in").split().branch(lambda key, value: False, "never").no_default_branch()
    branches["never"].to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")
        assert driver.produced == []


def test_a_branch_may_be_consumed_where_it_is_declared() -> None:
    builder = StreamsBuilder()
    branches = (
        builder.stream("in")
        .split()
        .branch(lambda key, value: value == "x", "x", consumer=lambda branch: branch.to("xs"))
        .default_branch("rest", chain=lambda branch: branch.map_values(str.upper))
    )
    assert list(branches) == ["rest"]
    branches["rest"].to("rest")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("1", "x"), ("2", "y")])
        assert driver.create_output_topic("xs").read_values_to_list() == ["x"]
        assert driver.create_output_topic("rest").read_values_to_list() == ["Y"]


def test_merged_streams_keep_the_order_of_arrival() -> None:
    builder = StreamsBuilder()
    builder.stream("one").merge(builder.stream("two")).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        one, two = driver.create_input_topic("one"), driver.create_input_topic("two")
        one.pipe_input("a", "1")
        two.pipe_input("b", "2")
        one.pipe_input("c", "3")
        assert driver.create_output_topic("out").read_values_to_list() == ["1", "2", "3"]


def test_a_function_may_name_the_topic_of_each_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to(lambda key, value, record: f"{record.topic}-{value}")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", "x"), ("b", "y")])
        assert [topic for topic, _ in driver.produced] == ["in-x", "in-y"]


def test_headers_and_timestamps_stay_with_a_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(str.upper).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 17, [("trace", b"1")])
        record = driver.create_output_topic("out").read_record()
    assert (record.timestamp, list(record.headers)) == (17, [("trace", b"1")])


def test_a_timestamp_extractor_replaces_the_time_of_a_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in", timestamp_extractor=lambda key, value, timestamp: timestamp + int(value)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "5", 10)
        assert driver.create_output_topic("out").read_record().timestamp == 15


def test_a_record_with_a_negative_timestamp_is_dropped() -> None:
    builder = StreamsBuilder()
    builder.stream("in", timestamp_extractor=lambda key, value, timestamp: -1).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "5", 10)
        assert driver.produced == []
        assert driver.dropped == {"negative-timestamp": 1}
