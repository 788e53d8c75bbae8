"""The Processor API: stores, forwarding, and schedules by stream time and by the wall clock."""

from functools import partial
from typing import Any

import pytest

from kaspar.streams import (
    ProcessingError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    serdes,
    stores,
)
from kaspar.streams.stores.spec import StoreSpec


class Numbering(Processor):
    """Puts a number of its own in front of each value of a key."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.store("numbers")

    def process(self, record: Record) -> None:
        number = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, number)
        self.context.forward(record.with_value(f"{number} {record.value}"))


def numbers_store() -> StoreSpec:
    return stores.key_value("numbers", serdes.text(), serdes.long())


def test_a_processor_uses_its_store_and_forwards() -> None:
    builder = StreamsBuilder().add_state_store(numbers_store())
    builder.stream("in").process(Numbering, ["numbers"]).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", "y"), ("b", "z")])
        assert driver.create_output_topic("out").read_values_to_list() == ["1 x", "2 y", "1 z"]
        assert dict(driver.store("numbers").all()) == {"a": 2, "b": 1}


def test_a_processor_may_not_use_a_store_that_it_was_not_given() -> None:
    builder = StreamsBuilder().add_state_store(numbers_store())
    builder.stream("in").process(Numbering).to("out")
    with pytest.raises(Exception, match="without declaring it"):
        TopologyTestDriver(builder.build())


class Naming(Processor):
    """Puts the name that a global table has for the key in front of each value."""

    def process(self, record: Record) -> None:
        found = self.context.store("names").get(record.key)
        self.context.forward(record.with_value(f"{found and found.value} {record.value}"))


def test_a_processor_may_use_the_store_of_every_global_table() -> None:
    builder = StreamsBuilder()
    builder.global_table("people", "names")
    builder.stream("in").process(Naming).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("people").pipe_key_values([("a", "Ada")])
        driver.create_input_topic("in").pipe_key_values([("a", "x"), ("b", "y")])
        assert driver.create_output_topic("out").read_values_to_list() == ["Ada x", "None y"]


def test_a_store_that_does_not_exist_is_refused_when_the_topology_is_built() -> None:
    with pytest.raises(TopologyError, match="Unknown store numbers"):
        StreamsBuilder().stream("in").process(Numbering, ["numbers"])


class Rekeying(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_key("other"))


def test_process_values_refuses_another_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process_values(Rekeying).to("out")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(ProcessingError, match="must keep keys"):
        driver.create_input_topic("in").pipe_input("a", "x")


class Routing(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record, child=record.value)


def test_a_processor_may_choose_the_child() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in").process(Routing)
    for name in ("left", "right"):
        stream.map_values(str.upper, name=name).to(name)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", "left"), ("b", "right")])
        assert [topic for topic, _ in driver.produced] == ["left", "right"]


def ticking(kind: PunctuationType) -> Topology:
    class Ticking(Processor):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            context.schedule(10, kind, self.tick)

        def tick(self, now: int) -> None:
            self.context.forward(Record("tick", str(now), now))

        def process(self, record: Record) -> None:
            pass

    builder = StreamsBuilder()
    builder.stream("in").process(Ticking).to("out")
    return builder.build()


def ticks(driver: TopologyTestDriver) -> list[Any]:
    return driver.create_output_topic("out").read_values_to_list()


def test_stream_time_punctuation_is_aligned_and_skips_what_it_missed() -> None:
    with TopologyTestDriver(ticking(PunctuationType.STREAM_TIME)) as driver:
        source = driver.create_input_topic("in")
        for timestamp in (3, 9, 10, 12, 45, 44, 49, 50):
            source.pipe_input("a", "x", timestamp)
        assert ticks(driver) == ["3", "10", "45", "50"]


def test_punctuations_are_called_in_the_order_in_which_they_are_due() -> None:
    class Both(Processor):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            for interval in (10, 7):
                context.schedule(interval, PunctuationType.STREAM_TIME, partial(self.tick, str(interval)))

        def tick(self, name: str, now: int) -> None:
            self.context.forward(Record("tick", name, now))

        def process(self, record: Record) -> None:
            pass

    builder = StreamsBuilder()
    builder.stream("in").process(Both).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for timestamp in (0, 30):
            driver.create_input_topic("in").pipe_input("a", "x", timestamp)
        assert ticks(driver) == ["10", "7", "7", "10"]


def test_wall_clock_punctuation_needs_no_records() -> None:
    with TopologyTestDriver(ticking(PunctuationType.WALL_CLOCK_TIME), wall_clock_ms=100) as driver:
        for _ in range(3):
            driver.advance_wall_clock_time(5)
        driver.advance_wall_clock_time(30)
        assert ticks(driver) == ["110", "145"]


def test_a_cancelled_schedule_is_not_called_again() -> None:
    class Once(Processor):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.schedule = context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)

        def tick(self, now: int) -> None:
            self.context.forward(Record("tick", str(now), now))
            self.schedule.cancel()

        def process(self, record: Record) -> None:
            pass

    builder = StreamsBuilder()
    builder.stream("in").process(Once).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.advance_wall_clock_time(10)
        driver.advance_wall_clock_time(10)
        assert ticks(driver) == ["10"]


class Failing(Processor):
    """Schedules a function that shows where it is called, and raises every other time."""

    def __init__(self, kind: PunctuationType) -> None:
        self.kind = kind

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(10, self.kind, self.call)

    def process(self, record: Record) -> None: ...

    def call(self, now: int) -> None:
        if now % 20:
            raise ValueError("odd")
        self.context.forward(Record("k", f"{now} {self.context.topic!r} {self.context.offset}", now))


@pytest.mark.parametrize("kind", PunctuationType)
def test_a_punctuation_that_raises_is_skipped_if_the_settings_say_so(kind: PunctuationType) -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(partial(Failing, kind)).to("out")

    def run(**settings: str) -> TopologyTestDriver:
        driver = TopologyTestDriver(builder.build(), {name.replace("_", "."): each for name, each in settings.items()})
        for now in (10, 20, 30):
            if kind is PunctuationType.STREAM_TIME:
                driver.pipe("in", b"a", b"x", now)
            else:
                driver.advance_wall_clock_time(10)
        return driver

    with pytest.raises(ProcessingError, match=r"^A punctuation .* ValueError: odd\. To go on .* = continue\.$"):
        run()
    driver = run(processing_exception_handler="continue", errors_dead_letter_queue_topic_name="dead")
    assert driver.dropped == {"processing": 2}
    assert driver.create_output_topic("out").read_values_to_list() == ["20 '' -1"]
    dead = [output[:3] for topic, output in driver.produced if topic == "dead"]
    assert dead == [(None, None, 10), (None, None, 30)]
