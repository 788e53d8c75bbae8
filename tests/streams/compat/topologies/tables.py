"""Tables: tombstones, filters, regrouping, joins: java/TableTopologies.java."""

from kaspar.streams import KTable, StreamsBuilder, ValueTransformer
from tests.streams.compat.functions import first, is_long, plus, reference, removed
from tests.streams.compat.topologies.registry import define
from tests.streams.compat.topologies.stateless import stream


def table(builder: StreamsBuilder) -> KTable:
    return builder.table("in", "table")


def left(builder: StreamsBuilder) -> KTable:
    return builder.table("left", "left-store")


def right(builder: StreamsBuilder) -> KTable:
    return builder.table("right", "right-store")


def has_long_value(key: str, value: str) -> bool:
    return is_long(value)


def by_first_letter(key: str, value: str) -> tuple[str, str]:
    return first(value), value


def add(key: str, value: str, aggregate: str) -> str:
    return plus(aggregate, value)


def subtract(key: str, value: str, aggregate: str) -> str:
    return removed(aggregate, value)


class WithKey(ValueTransformer):
    def transform(self, key: str, value: str | None) -> str | None:
        return None if value is None else plus(key, value)


define("table", "in", lambda builder: table(builder).to_stream().to("out"))
define("table-without-store", "in", lambda builder: builder.table("in").to_stream().to("out"))
define("table-filter", "in", lambda builder: table(builder).filter(has_long_value).to_stream().to("out"))
define("table-filter-not", "in", lambda builder: table(builder).filter_not(has_long_value).to_stream().to("out"))
define(
    "table-filter-materialized",
    "in",
    lambda builder: table(builder).filter(has_long_value, "filtered").to_stream().to("out"),
)
define(
    "table-map-values",
    "in",
    lambda builder: table(builder).map_values(lambda value: plus(value, "m")).to_stream().to("out"),
)
define(
    "table-map-values-materialized",
    "in",
    lambda builder: table(builder).map_values(lambda value: plus(value, "m"), "mapped").to_stream().to("out"),
)
define(
    "table-filter-after-map",
    "in",
    lambda builder: (
        table(builder)
        .map_values(lambda value: value + value)
        .filter(lambda key, value: len(value) > 2)
        .to_stream()
        .to("out")
    ),
)
define("table-transform-values", "in", lambda builder: table(builder).transform_values(WithKey).to_stream().to("out"))
define(
    "table-transform-values-materialized",
    "in",
    lambda builder: table(builder).transform_values(WithKey, "transformed").to_stream().to("out"),
)
define(
    "table-to-stream-new-key",
    "in",
    lambda builder: table(builder).to_stream(lambda key, value: first(value)).to("out"),
)
define("to-table", "in", lambda builder: stream(builder).to_table("table").to_stream().to("out"))
define(
    "to-table-new-key",
    "in",
    lambda builder: stream(builder).select_key(lambda key, value: first(value)).to_table("table").to_stream().to("out"),
)
define(
    "table-group-count",
    "in",
    lambda builder: table(builder).group_by(by_first_letter).count("grouped").to_stream().to("out"),
)
define(
    "table-group-reduce",
    "in",
    lambda builder: table(builder).group_by(by_first_letter).reduce(plus, removed, "grouped").to_stream().to("out"),
)
define(
    "table-group-aggregate",
    "in",
    lambda builder: (
        table(builder).group_by(by_first_letter).aggregate(lambda: "", add, subtract, "grouped").to_stream().to("out")
    ),
)
define(
    "table-group-null-key",
    "in",
    lambda builder: (
        table(builder)
        .group_by(lambda key, value: (reference(value), value))
        .aggregate(lambda: "", add, subtract, "grouped")
        .to_stream()
        .to("out")
    ),
)
define(
    "table-filter-group-count",
    "in",
    lambda builder: (
        table(builder).filter(has_long_value).group_by(by_first_letter).count("grouped").to_stream().to("out")
    ),
)

define("table-join", "left right", lambda builder: left(builder).join(right(builder), plus).to_stream().to("out"))
define(
    "table-left-join", "left right", lambda builder: left(builder).left_join(right(builder), plus).to_stream().to("out")
)
define(
    "table-outer-join",
    "left right",
    lambda builder: left(builder).outer_join(right(builder), plus).to_stream().to("out"),
)
define(
    "table-join-materialized",
    "left right",
    lambda builder: left(builder).join(right(builder), plus, "joined").to_stream().to("out"),
)
define(
    "table-left-join-materialized",
    "left right",
    lambda builder: left(builder).left_join(right(builder), plus, "joined").to_stream().to("out"),
)
define(
    "table-outer-join-materialized",
    "left right",
    lambda builder: left(builder).outer_join(right(builder), plus, "joined").to_stream().to("out"),
)
define(
    "table-filter-join",
    "left right",
    lambda builder: (
        left(builder).filter(has_long_value).join(right(builder).map_values(first), plus).to_stream().to("out")
    ),
)


def table_join_itself(builder: StreamsBuilder) -> None:
    one = table(builder)
    one.join(one.map_values(first), plus).to_stream().to("out")


define("table-join-itself", "in", table_join_itself)
define(
    "foreign-key-join",
    "left right",
    lambda builder: left(builder).join(right(builder), plus, foreign_key=reference).to_stream().to("out"),
)
define(
    "foreign-key-left-join",
    "left right",
    lambda builder: left(builder).left_join(right(builder), plus, foreign_key=reference).to_stream().to("out"),
)
define(
    "foreign-key-join-materialized",
    "left right",
    lambda builder: left(builder).join(right(builder), plus, "joined", foreign_key=reference).to_stream().to("out"),
)
define(
    "foreign-key-left-join-materialized",
    "left right",
    lambda builder: (
        left(builder).left_join(right(builder), plus, "joined", foreign_key=reference).to_stream().to("out")
    ),
)
define(
    "foreign-key-join-then-count",
    "left right",
    lambda builder: (
        left(builder)
        .join(right(builder), plus, foreign_key=reference)
        .group_by(by_first_letter)
        .count("grouped")
        .to_stream()
        .to("out")
    ),
)
