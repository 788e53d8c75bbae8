"""Operators from streams of text to streams of text, so that each can follow each: java/Operators.java.

The name "chain: a, b" is the topology in which the records of topic "in" pass the operators a and b. The number n of an
operator in its chain is part of the names of its stores and of its own topic "right-n".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kaspar.streams import EmitStrategy, KStream, KTable, StreamsBuilder, Suppressed, Windowed, serdes
from kaspar.streams.stores.kinds import KEY_VALUE
from kaspar.streams.stores.spec import StoreSpec
from tests.streams.compat.functions import first, is_long, letters, optional, plus, reference
from tests.streams.compat.topologies.aggregations import append
from tests.streams.compat.topologies.joins import WINDOWS_WITH_GRACE
from tests.streams.compat.topologies.processors import Previous, PreviousValue
from tests.streams.compat.topologies.registry import Definition
from tests.streams.compat.topologies.suppress import UNTIL_WINDOW_CLOSES
from tests.streams.compat.topologies.tables import add, by_first_letter, has_long_value, subtract
from tests.streams.compat.topologies.windows import (
    HOPPING_WITH_GRACE,
    LONG_RETENTION,
    SESSIONS_WITH_GRACE,
    SLIDING_WITH_GRACE,
    TUMBLING_WITH_GRACE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """The place of an operator in a topology."""

    builder: StreamsBuilder
    number: int

    def named(self, name: str) -> str:
        return f"{name}-{self.number}"

    def right_stream(self) -> KStream:
        return self.builder.stream(self.named("right"))

    def right_table(self) -> KTable:
        return self.builder.table(self.named("right"), self.named("right-store"))

    def as_table(self, stream: KStream) -> KTable:
        return stream.to_table(self.named("table"))

    def add_store(self) -> str:
        name = self.named("previous")
        text = serdes.text()
        self.builder.add_state_store(StoreSpec(name=name, kind=KEY_VALUE, key_serde=text, value_serde=text))
        return name


Operator: TypeAlias = Callable[[Step, KStream], KStream]


def texts(windows: KTable) -> KStream:
    """Windows as texts: their keys with the starts of the windows."""

    def key_and_start(key: Windowed[str], value: Any) -> str:
        return f"{key.key}@{key.window.start}"

    return windows.to_stream(key_and_start).map_values(optional)


STATELESS: dict[str, Operator] = {
    "map": lambda step, stream: stream.map(lambda key, value: (first(value), plus(key, value))),
    "map-values": lambda step, stream: stream.map_values(lambda value: plus(value, "m")),
    "flat-map": lambda step, stream: stream.flat_map(
        lambda key, value: [(letter, key) for letter in letters(value)[:2]]
    ),
    "flat-map-values": lambda step, stream: stream.flat_map_values(lambda value: letters(value)[:2]),
    "filter": lambda step, stream: stream.filter(has_long_value),
    "select-key": lambda step, stream: stream.select_key(lambda key, value: reference(value)),
    "merge": lambda step, stream: stream.merge(step.right_stream()),
    "repartition": lambda step, stream: stream.repartition(name=step.named("moved")),
}
AGGREGATES: dict[str, Operator] = {
    "count": lambda step, stream: stream.group_by_key().count(step.named("counts")).to_stream().map_values(optional),
    "group-by-reduce": lambda step, stream: (
        stream.group_by(lambda key, value: first(value)).reduce(plus, step.named("reduced")).to_stream()
    ),
    "aggregate": lambda step, stream: (
        stream.group_by_key().aggregate(lambda: "", append, step.named("aggregated")).to_stream()
    ),
    "tumbling-count": lambda step, stream: texts(
        stream.group_by_key().windowed_by(TUMBLING_WITH_GRACE).count(step.named("windows"))
    ),
    "hopping-reduce": lambda step, stream: texts(
        stream.group_by_key().windowed_by(HOPPING_WITH_GRACE).reduce(plus, step.named("windows"))
    ),
    "sliding-count": lambda step, stream: texts(
        stream.group_by_key().windowed_by(SLIDING_WITH_GRACE).count(step.named("windows"))
    ),
    "session-count": lambda step, stream: texts(
        stream.group_by_key().windowed_by(SESSIONS_WITH_GRACE).count(step.named("sessions"))
    ),
    "final-tumbling-count": lambda step, stream: texts(
        stream.group_by_key()
        .windowed_by(TUMBLING_WITH_GRACE)
        .emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
        .count(step.named("windows"), retention=LONG_RETENTION)
    ),
    "suppressed-tumbling-count": lambda step, stream: texts(
        stream.group_by_key()
        .windowed_by(TUMBLING_WITH_GRACE)
        .count(step.named("windows"))
        .suppress(UNTIL_WINDOW_CLOSES)
    ),
    "suppressed-reduce": lambda step, stream: (
        stream.group_by_key().reduce(plus, step.named("reduced")).suppress(Suppressed.until_time_limit(60)).to_stream()
    ),
}
TABLES: dict[str, Operator] = {
    "table": lambda step, stream: step.as_table(stream).to_stream(),
    "table-filter": lambda step, stream: step.as_table(stream).filter(lambda key, value: is_long(value)).to_stream(),
    "table-map-values": lambda step, stream: (
        step.as_table(stream).map_values(lambda value: plus(value, "t"), step.named("mapped")).to_stream()
    ),
    "table-group": lambda step, stream: (
        step.as_table(stream)
        .group_by(by_first_letter)
        .aggregate(lambda: "", add, subtract, step.named("grouped"))
        .to_stream()
    ),
    "table-join": lambda step, stream: step.as_table(stream).join(step.right_table(), plus).to_stream(),
    "table-outer-join": lambda step, stream: step.as_table(stream).outer_join(step.right_table(), plus).to_stream(),
    "foreign-key-left-join": lambda step, stream: (
        step.as_table(stream).left_join(step.right_table(), plus, foreign_key=reference).to_stream()
    ),
}
JOINS: dict[str, Operator] = {
    "stream-join": lambda step, stream: stream.join(step.right_stream(), plus, WINDOWS_WITH_GRACE),
    "stream-left-join": lambda step, stream: stream.left_join(step.right_stream(), plus, WINDOWS_WITH_GRACE),
    "stream-outer-join": lambda step, stream: stream.outer_join(step.right_stream(), plus, WINDOWS_WITH_GRACE),
    "self-join": lambda step, stream: stream.join(stream, plus, WINDOWS_WITH_GRACE),
    "stream-table-join": lambda step, stream: stream.join(step.right_table(), plus),
    "stream-table-left-join": lambda step, stream: stream.left_join(step.right_table(), plus),
    "stream-global-table-join": lambda step, stream: stream.join(
        step.builder.global_table(step.named("right"), step.named("global")),
        plus,
        key_selector=lambda key, value: first(value),
    ),
}


def process(step: Step, stream: KStream) -> KStream:
    store = step.add_store()
    return stream.process(lambda: Previous(store), [store])


def process_values(step: Step, stream: KStream) -> KStream:
    store = step.add_store()
    return stream.process_values(lambda: PreviousValue(store), [store])


OPERATORS: dict[str, Operator] = {
    **STATELESS,
    **AGGREGATES,
    **TABLES,
    **JOINS,
    "process": process,
    "process-values": process_values,
}
PREFIX = "chain: "


def chain(operators: Sequence[str]) -> Definition:
    """The topology of these operators, in this order."""

    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("in")
        for number, operator in enumerate(operators, 1):
            stream = OPERATORS[operator](Step(builder, number), stream)
        stream.to("out")

    rights = [f"right-{number}" for number, operator in enumerate(operators, 1) if _has_topic(operator)]
    return Definition(PREFIX + ", ".join(operators), ["in", *rights], build)


def _has_topic(operator: str) -> bool:
    """Whether it reads a topic of its own."""
    return operator == "merge" or (operator.endswith("join") and operator != "self-join")
