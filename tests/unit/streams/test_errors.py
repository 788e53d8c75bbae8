"""Records that cannot be read, processed or written: the program stops, or skips them and keeps them (KIP-1034)."""

from typing import Any

import pytest

from kaspar.serialization.errors import RegistryUnavailable
from kaspar.streams import (
    KStream,
    ProcessingError,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
    serdes,
)

CONTINUE = {
    "deserialization.exception.handler": "continue",
    "processing.exception.handler": "continue",
    "production.exception.handler": "continue",
    "errors.dead.letter.queue.topic.name": "dead",
}


def doubled(value_serde: object = None) -> StreamsBuilder:
    builder = StreamsBuilder()
    stream: KStream = builder.stream("in", value_serde=serdes.integer())
    stream.map_values(lambda value: 100 // value).to("out", value_serde=serdes.integer())
    return builder


def headers_of(driver: TopologyTestDriver) -> list[dict[str, str]]:
    dead = driver.create_output_topic("dead", serdes.raw(), serdes.raw())
    return [
        {name.removeprefix("__streams.errors."): (value or b"").decode() for name, value in record.headers}
        for record in dead.read_records_to_list()
    ]


def test_a_record_that_cannot_be_read_stops_the_program_by_default() -> None:
    with (
        TopologyTestDriver(doubled().build()) as driver,
        pytest.raises(ProcessingError, match="topic in, partition 0, offset 0"),
    ):
        driver.pipe("in", b"a", b"not a number")


def test_a_record_that_cannot_be_read_is_kept_as_it_was() -> None:
    with TopologyTestDriver(doubled().build(), CONTINUE) as driver:
        driver.pipe("in", b"a", b"not a number", 7)
        driver.pipe("in", b"a", b"\0\0\0\5", 8)
        assert driver.dropped == {"deserialization": 1}
        dead = [output for topic, output in driver.produced if topic == "dead"]
        assert [output[:3] for output in dead] == [(b"a", b"not a number", 7)]
        (headers,) = headers_of(driver)
        assert (headers["topic"], headers["partition"], headers["offset"]) == ("in", "0", "0")
        assert headers["exception"] == "SerializationError"
        assert driver.create_output_topic("out", value_serde=serdes.integer()).read_values_to_list() == [20]


def test_an_exception_of_the_program_stops_it_by_default_and_names_the_record() -> None:
    with (
        TopologyTestDriver(doubled().build()) as driver,
        pytest.raises(ProcessingError, match=r"ZeroDivisionError.*offset 0"),
    ):
        driver.pipe("in", b"a", b"\0\0\0\0")


def test_a_record_that_cannot_be_processed_is_skipped_and_kept() -> None:
    with TopologyTestDriver(doubled().build(), CONTINUE) as driver:
        driver.pipe("in", b"a", b"\0\0\0\0", 7)
        assert driver.dropped == {"processing": 1}
        (headers,) = headers_of(driver)
        assert headers["exception"] == "ZeroDivisionError"
        assert "stacktrace" in headers


def test_only_the_step_that_raises_skips_a_record() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.map_values(int).to("numbers", value_serde=serdes.integer())
    stream.to("copies")
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")
        assert [topic for topic, _ in driver.produced] == ["dead", "copies"]


def test_a_record_that_cannot_be_written_is_skipped_if_the_settings_say_so() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(len).to("out")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(ProcessingError, match="cannot write an int"):
        driver.create_input_topic("in").pipe_input("a", "x")
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")
        assert driver.dropped == {"serialization": 1}
        assert [topic for topic, _ in driver.produced] == ["dead"]


@pytest.mark.parametrize("size", [900, 1100])
def test_a_record_that_is_too_large_is_skipped_if_the_settings_say_so(size: int) -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(lambda value: value * size).to("out")
    with TopologyTestDriver(builder.build(), {**CONTINUE, "producer.max.request.size": 1024}) as driver:
        driver.pipe("in", b"a", b"x", 7, [("h", b"1")])
        is_large = size > 1000
        assert driver.dropped == ({"too-large": 1} if is_large else {})
        assert [topic for topic, _ in driver.produced] == ["dead" if is_large else "out"]
        if is_large:
            assert headers_of(driver)[0]["exception"] == "RecordTooLarge"


def test_state_that_cannot_be_written_is_an_error_of_the_step() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().aggregate(list, lambda key, value, seen: [*seen, value], "seen")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(ProcessingError, match="cannot write a list"):
        driver.create_input_topic("in").pipe_input("a", "x")


def test_a_record_for_both_sides_of_the_shuffle_is_refused_once() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value_serde=serdes.integer())
    stream.group_by_key().count().to_stream().to("counts")
    stream.map_values(str).to("out")
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        driver.pipe("in", b"a", b"not a number")
        assert driver.dropped == {"deserialization": 1}
        assert [topic for topic, _ in driver.produced] == ["dead"]


def failing(key: str, value: object, aggregate: str) -> str:
    raise ValueError("no")


def behind_a_step_of_the_map_side(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").map_values(lambda text: {"text": text})
    stream.group_by_key().aggregate(str, failing, "sums")


def behind_a_new_key(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").map_values(str.upper)
    stream.group_by(lambda key, text: text).aggregate(str, failing, "sums")


def behind_a_partitioner(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").repartition(name="again", partitioner=lambda topic, key, value, partitions: 0)
    stream.group_by_key().aggregate(str, failing, "sums")


@pytest.mark.parametrize("topology", [behind_a_step_of_the_map_side, behind_a_new_key, behind_a_partitioner])
@pytest.mark.parametrize("headers", [None, [("h", b"1"), ("key", None)]])
def test_a_record_that_fails_in_a_task_is_kept_as_it_was_read(topology: Any, headers: Any) -> None:
    builder = StreamsBuilder()
    topology(builder)
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        driver.pipe("in", b"a", b"hello", 7, headers)
        ((topic, output),) = driver.produced
        assert (topic, *output[:3]) == ("dead", b"a", b"hello", 7)
        own = [(name, value) for name, value in output[3] or () if not name.startswith("__streams.")]
        assert own == (headers or [])


def test_headers_pass_a_shuffle_that_keeps_records_as_they_were_read() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(str.upper).group_by_key().reduce(lambda value, other: other).to_stream().to("out")
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        driver.pipe("in", b"a", b"x", 7, [("h", b"1")])
        driver.pipe("in", b"a", b"y", 8)
        records = driver.create_output_topic("out").read_records_to_list()
        assert [(record.value, record.headers) for record in records] == [("X", (("h", b"1"),)), ("Y", ())]


def test_a_suppressed_result_is_not_kept_as_the_record_that_released_it() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size(10)).count()
    final = counts.suppress(Suppressed.until_window_closes()).to_stream()
    final.map_values(lambda count: 1 // (count - 1)).to("out", value_serde=serdes.integer())
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        driver.pipe("in", b"a", b"first", 5)
        driver.pipe("in", b"b", b"second", 15)
        ((topic, output),) = driver.produced
        assert (topic, *output[:3]) == ("dead", None, None, 5)
        assert headers_of(driver)[0]["offset"] == "0"


AWAY = {"schema.registry.url": "http://127.0.0.1:1", "max.retries": "0"}
TRADE = {"type": "record", "name": "Trade", "fields": [{"name": "size", "type": "long"}]}


def read_by_the_registry(builder: StreamsBuilder, serde: Any) -> None:
    builder.stream("in", value_serde=serde).to("out", value_serde=serdes.json())


def written_by_the_registry(builder: StreamsBuilder, serde: Any) -> None:
    builder.stream("in").map_values(lambda text: {"size": 1}).to("out", value_serde=serde)


def stored_by_the_registry(builder: StreamsBuilder, serde: Any) -> None:
    builder.stream("in").group_by_key().aggregate(dict, lambda key, text, trade: {"size": 1}, "sums", value_serde=serde)


def joined_by_the_registry(builder: StreamsBuilder, serde: Any) -> None:
    table = builder.global_table("in", value_serde=serde)
    builder.stream("other").join(table, lambda text, trade: text, key_selector=lambda key, text: text).to("out")


@pytest.mark.parametrize(
    "topology", [read_by_the_registry, written_by_the_registry, stored_by_the_registry, joined_by_the_registry]
)
def test_no_record_is_skipped_because_the_registry_is_away(topology: Any) -> None:
    builder = StreamsBuilder()
    topology(builder, serdes.avro(TRADE, registry=AWAY))
    with TopologyTestDriver(builder.build(), CONTINUE) as driver:
        with pytest.raises(RegistryUnavailable):
            driver.pipe("in", b"a", b"\0\0\0\0\1\x02")
        assert (driver.dropped, driver.produced) == ({}, [])
