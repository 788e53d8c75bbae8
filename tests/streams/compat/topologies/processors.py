"""The Processor API inside the DSL, with stores and punctuation: java/ProcessorTopologies.java."""

from collections.abc import Callable

from kaspar.streams import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, serdes
from kaspar.streams.stores.kinds import KEY_VALUE
from kaspar.streams.stores.spec import StoreSpec
from tests.streams.compat.functions import plus, text
from tests.streams.compat.topologies.registry import Build, define
from tests.streams.compat.topologies.stateless import stream


class Previous(Processor):
    """Forwards the previous value of the key with the new one, 5 ms later than the record. None deletes."""

    def __init__(self, store: str = "previous") -> None:
        self.store_name = store

    def process(self, record: Record) -> None:
        store = self.context.store(self.store_name)
        key = text(record.key)
        joined = plus(store.get(key), record.value)
        store.put(key, record.value)
        self.context.forward(record.with_key(key).with_value(joined).with_timestamp(record.timestamp + 5))


class PreviousValue(Processor):
    """The same without a change of key and time."""

    def __init__(self, store: str = "previous") -> None:
        self.store_name = store

    def process(self, record: Record) -> None:
        store = self.context.store(self.store_name)
        key = text(record.key)
        joined = plus(store.get(key), record.value)
        store.put(key, record.value)
        self.context.forward(record.with_value(joined))


class Collecting(Processor):
    """Collects values by key; each punctuation forwards and forgets them, in the order of the store."""

    kind = PunctuationType.STREAM_TIME

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.store("previous")
        context.schedule(50, self.kind, self.punctuate)

    def process(self, record: Record) -> None:
        key = text(record.key)
        self.store.put(key, plus(self.store.get(key), record.value))

    def punctuate(self, timestamp: int) -> None:
        entries = list(self.store.all())
        for key, value in entries:
            self.store.delete(key)
            self.context.forward(Record(key, value, timestamp))
        self.context.forward(Record("tick", text(len(entries)), timestamp))


class CollectingByWallClock(Collecting):
    kind = PunctuationType.WALL_CLOCK_TIME


class PunctuatedOnce(Processor):
    """A punctuation that cancels itself, and one of another interval beside it; both show the stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.once = context.schedule(100, PunctuationType.STREAM_TIME, self.punctuate_once)
        context.schedule(70, PunctuationType.STREAM_TIME, self.punctuate)

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(plus(record.value, self.context.current_stream_time_ms())))

    def punctuate_once(self, timestamp: int) -> None:
        self.context.forward(Record("once", text(self.context.current_stream_time_ms()), timestamp))
        if timestamp >= 100:
            self.once.cancel()

    def punctuate(self, timestamp: int) -> None:
        self.context.forward(Record("often", text(self.context.current_stream_time_ms()), timestamp))


def with_store(builder: StreamsBuilder) -> StreamsBuilder:
    builder.add_state_store(
        StoreSpec(name="previous", kind=KEY_VALUE, key_serde=serdes.text(), value_serde=serdes.text())
    )
    return builder


def process(processor: Callable[[], Processor]) -> Build:
    return lambda builder: stream(with_store(builder)).process(processor, ["previous"]).to("out")


define("process-store", "in", process(Previous))
define("punctuate-stream-time", "in", process(Collecting))
define("punctuate-wall-clock", "in", process(CollectingByWallClock))
define("punctuate-once", "in", process(PunctuatedOnce))
define(
    "process-values-store",
    "in",
    lambda builder: stream(with_store(builder)).process_values(PreviousValue, ["previous"]).to("out"),
)
define(
    "process-values-then-group",
    "in",
    lambda builder: (
        stream(with_store(builder))
        .process_values(PreviousValue, ["previous"])
        .group_by_key()
        .count("counts")
        .to_stream()
        .to("out")
    ),
)
define(
    "process-then-group",
    "in",
    lambda builder: (
        stream(with_store(builder)).process(Previous, ["previous"]).group_by_key().count("counts").to_stream().to("out")
    ),
)
