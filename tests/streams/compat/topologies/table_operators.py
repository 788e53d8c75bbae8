"""Operators from tables of text to tables of text, so that each can follow each: java/TableOperators.java.

The name "tables: a, b" is the topology in which the table of topic "in" passes the operators a and b. The number n of
an operator in its chain is part of the names of its stores and of its own topic "right-n".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kaspar.streams import KTable, StreamsBuilder, Suppressed
from kaspar.streams.dsl.grouped_tables import KGroupedTable
from tests.streams.compat.functions import first, plus, reference, removed
from tests.streams.compat.topologies.registry import Definition
from tests.streams.compat.topologies.tables import WithKey, add, by_first_letter, has_long_value, subtract


@dataclass(frozen=True, slots=True)
class Step:
    """The place of an operator in a topology."""

    builder: StreamsBuilder
    number: int

    def named(self, name: str) -> str:
        return f"{name}-{self.number}"

    def right(self) -> KTable:
        return self.builder.table(self.named("right"))

    def grouped(self, table: KTable) -> KGroupedTable[KTable]:
        return table.group_by(by_first_letter)


Operator: TypeAlias = Callable[[Step, KTable], KTable]

OPERATORS: dict[str, Operator] = {
    "filter": lambda step, table: table.filter(has_long_value),
    "filter-store": lambda step, table: table.filter(has_long_value, step.named("filtered")),
    "filter-not": lambda step, table: table.filter_not(has_long_value),
    "map-values": lambda step, table: table.map_values(lambda value: plus(value, "m")),
    "map-values-store": lambda step, table: table.map_values(lambda value: plus(value, "m"), step.named("mapped")),
    "map-values-to-null": lambda step, table: table.map_values(reference),
    "transform-values": lambda step, table: table.transform_values(WithKey),
    "transform-values-store": lambda step, table: table.transform_values(WithKey, step.named("transformed")),
    "join": lambda step, table: table.join(step.right(), plus),
    "join-store": lambda step, table: table.join(step.right(), plus, step.named("joined")),
    "left-join": lambda step, table: table.left_join(step.right(), plus),
    "outer-join": lambda step, table: table.outer_join(step.right(), plus),
    "right-of-join": lambda step, table: step.right().left_join(table, plus),
    "self-join": lambda step, table: table.join(table.map_values(first), plus),
    "foreign-key-join": lambda step, table: table.join(step.right(), plus, foreign_key=reference),
    "foreign-key-left-join": lambda step, table: table.left_join(step.right(), plus, foreign_key=reference),
    "right-of-foreign-key-join": lambda step, table: step.right().join(table, plus, foreign_key=reference),
    "group-count": lambda step, table: (
        step.grouped(table).count(step.named("counts")).map_values(lambda count: plus(count, "n"))
    ),
    "group-reduce": lambda step, table: step.grouped(table).reduce(plus, removed),
    "group-aggregate": lambda step, table: step.grouped(table).aggregate(lambda: "", add, subtract),
    "suppress": lambda step, table: table.suppress(Suppressed.until_time_limit(60)),
    "through-stream": lambda step, table: table.to_stream().to_table(),
}
PREFIX = "tables: "


def table_chain(operators: Sequence[str]) -> Definition:
    """The topology of these operators, in this order."""

    def build(builder: StreamsBuilder) -> None:
        table = builder.table("in")
        for number, operator in enumerate(operators, 1):
            table = OPERATORS[operator](Step(builder, number), table)
        table.to_stream().to("out")

    rights = [f"right-{number}" for number, operator in enumerate(operators, 1) if _has_topic(operator)]
    return Definition(PREFIX + ", ".join(operators), ["in", *rights], build)


def _has_topic(operator: str) -> bool:
    """Whether it reads a topic of its own."""
    return "join" in operator and operator != "self-join"
