"""One program with steps of many kinds, on Spark and under the test driver: both write the same records."""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from kaspar.streams import (
    EmitStrategy,
    Processor,
    ProcessorContext,
    Record,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    ValueTransformer,
    serdes,
    stores,
)
from kaspar.testing.services import Services
from tests.peers.kaspar import KasparProcess
from tests.spark.programs.apps import running
from tests.spark.topics import Message, Topics

START = int(time.time()) // 10 * 10_000 - 60_000  # recent, since old records are deleted
SIZE = {"type": "record", "name": "Size", "fields": [{"name": "size", "type": "long"}]}
EVENTS, OTHERS, SIZES = "steps-events", "steps-others", "steps-sizes"
OUTPUTS = ("sessions", "sliding", "closed", "cogrouped", "twice", "numbered", "read-sizes", "late", "of-a", "of-b")

Input = tuple[str, bytes, bytes, int]
"""The topic of a record, its key, value and timestamp."""
Output = tuple[bytes | None, bytes | None, int]


class Twice(ValueTransformer):
    def transform(self, key: str, value: int) -> int:
        return 2 * value


class Numbered(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.numbers = context.store("numbers")

    def process(self, record: Record) -> None:
        number = (self.numbers.get(record.key) or 0) + 1
        self.numbers.put(record.key, number)
        self.context.forward(record.with_value(f"{number} {record.value}"))


def window_name(windowed: Any, value: Any) -> str:
    return f"{windowed.key}@{windowed.window.start}-{windowed.window.end}"


def many_steps(registry: str) -> Topology:
    builder = StreamsBuilder().add_state_store(stores.key_value("numbers", serdes.text(), serdes.long()))
    events = builder.stream(EVENTS)
    grouped = events.group_by_key()
    sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap(50).grace(20)).count("session-counts")
    sessions.to_stream(window_name).to("steps-sessions", value_serde=serdes.long())
    sliding = grouped.windowed_by(SlidingWindows.of_time_difference(30).grace(20))
    sliding.reduce(lambda text, other: text + other, "slid").to_stream(window_name).to("steps-sliding")
    tumbling = grouped.windowed_by(TimeWindows.of_size(40).grace(10))
    closed = tumbling.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count("window-counts")
    closed.to_stream(window_name).to("steps-closed", value_serde=serdes.long())
    together = grouped.cogroup(lambda key, value, text: text + value)
    together = together.cogroup(builder.stream(OTHERS).group_by_key(), lambda key, value, text: f"{text}({value})")
    together.aggregate(str, "together").to_stream().to("steps-cogrouped")
    totals = grouped.count("totals").transform_values(Twice, "doubled", value_serde=serdes.long())
    totals.to_stream().to("steps-twice", value_serde=serdes.long())
    events.process_values(Numbered, ["numbers"]).to("steps-numbered")
    events.to(lambda key, value, context: f"steps-of-{key}")
    sized = serdes.avro(SIZE, registry=registry)
    events.map_values(lambda value: {"size": len(value)}).to(SIZES, value_serde=sized)
    builder.stream(SIZES, value_serde=sized).map_values(lambda value: str(value["size"])).to("steps-read-sizes")
    return builder.build()


def inputs(first: int) -> list[Input]:
    """Some records are late, and none of the two topics are of the same time."""
    events = [
        (
            EVENTS,
            b"ab"[number % 2 : number % 2 + 1],
            f"e{number}".encode(),
            START + 10 * number - (number % 7 == 6) * 90,
        )
        for number in range(first, first + 30)
    ]
    others = [(OTHERS, b"a", f"o{number}".encode(), START + 10 * number + 5) for number in range(first, first + 30, 4)]
    return [*events, *others]


def in_order(records: list[Input]) -> list[Input]:
    """As a task processes them."""
    keyed = []
    for topic in (EVENTS, OTHERS):
        own = [record for record in records if record[0] == topic]
        reached = accumulate((record[3] for record in own), max)
        keyed += [(time, topic, number, record) for number, (time, record) in enumerate(zip(reached, own, strict=True))]
    return [record for *_, record in sorted(keyed)]


def _are_written(topics: Topics, wanted: Mapping[str, list[Output]]) -> bool:
    return all(len(topics.read(topic)) >= len(records) for topic, records in wanted.items())


@pytest.fixture
def registry(shared_broker: KasparProcess) -> Iterator[str]:
    services = Services(registry=True, rest=False)
    services.start(shared_broker.bootstrap, {})
    yield services.url("registry")
    services.stop()


@pytest.mark.usefixtures("spark")
def test_a_program_writes_on_spark_what_it_writes_under_the_test_driver(
    broker: KasparProcess, topics: Topics, tmp_path: Path, registry: str
) -> None:
    for name in (EVENTS, OTHERS, SIZES, "steps-of-a", "steps-of-b"):
        topics.create(name=name)
    topology = many_steps(registry)
    wanted: dict[str, list[Output]] = {}
    with TopologyTestDriver(topology, {"kaspar.late.topic.name": "steps-late"}) as driver:
        for first in (0, 30):
            records = inputs(first)
            for topic in (EVENTS, OTHERS):
                own = [record for record in records if record[0] == topic]
                topics.produce(topic, [Message(value, key, timestamp_ms=time) for _, key, value, time in own])
            for topic, key, value, timestamp in in_order(records):
                driver.pipe(topic, key, value, timestamp)
            wanted = {f"steps-{name}": [] for name in OUTPUTS}
            for topic, output in driver.produced:
                if topic in wanted:
                    wanted[topic].append(output[:3])
            settings = {"kaspar_late_topic_name": "steps-late", "processing_guarantee": "exactly_once_v2"}
            with running(topology, broker.bootstrap, tmp_path, "many-steps", **settings) as app:
                app.wait_for(partial(_are_written, topics, wanted), "all is written")
    assert all(wanted.values()), "every step writes something"
    for topic, records_of_topic in wanted.items():
        written = [(record.key, record.value, record.timestamp[1]) for record in topics.read(topic)]
        assert written == records_of_topic, topic
