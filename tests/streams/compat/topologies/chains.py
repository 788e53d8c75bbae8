"""Operators after one another, as programs have them: java/ChainTopologies.java."""

from typing import Any

from kaspar.streams import StreamsBuilder, TimeWindows, Windowed, serdes
from tests.streams.compat.functions import first, is_long, plus, text, upper
from tests.streams.compat.topologies import joins, tables
from tests.streams.compat.topologies.joins import WINDOWS_WITH_GRACE
from tests.streams.compat.topologies.registry import define
from tests.streams.compat.topologies.stateless import stream
from tests.streams.compat.topologies.suppress import UNTIL_WINDOW_CLOSES
from tests.streams.compat.topologies.windows import (
    HOPPING_WITH_GRACE,
    LONG_RETENTION,
    SESSIONS_WITH_GRACE,
    SLIDING_WITH_GRACE,
    TUMBLING_WITH_GRACE,
    grouped,
)

LONGS: dict[str, Any] = {"key_serde": serdes.text(), "value_serde": serdes.long()}
LONG_VALUES: dict[str, Any] = {"value_serde": serdes.long()}


def add(key: str, count: int, total: int) -> int:
    return total + count


def subtract(key: str, count: int, total: int) -> int:
    return total - count


define(
    "count-stream-of-counts",
    "in",
    lambda builder: (
        grouped(builder)
        .count("counts")
        .to_stream()
        .group_by(lambda key, count: text(count), **LONGS)
        .count("counts-of-counts")
        .to_stream()
        .to("out")
    ),
)
define(
    "count-table-of-counts",
    "in",
    lambda builder: (
        grouped(builder)
        .count("counts")
        .group_by(lambda key, count: (text(count), count), **LONGS)
        .count("counts-of-counts")
        .to_stream()
        .to("out")
    ),
)
define(
    "count-group-aggregate",
    "in",
    lambda builder: (
        grouped(builder)
        .count("counts")
        .group_by(lambda key, count: (first(key), count), **LONGS)
        .aggregate(lambda: 0, add, subtract, "sums", **LONG_VALUES)
        .to_stream()
        .to("out")
    ),
)


def with_start(key: Windowed[str], count: int) -> tuple[str, str]:
    return key.key, plus(key.window.start, count)


define(
    "window-suppress-join",
    "left right",
    lambda builder: (
        joins.left(builder)
        .group_by_key()
        .windowed_by(TUMBLING_WITH_GRACE)
        .count("windowed")
        .suppress(UNTIL_WINDOW_CLOSES)
        .to_stream()
        .map(with_start)
        .join(joins.table(builder), plus)
        .to("out")
    ),
)
define(
    "window-then-group-by-window",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(TUMBLING_WITH_GRACE)
        .count("windowed")
        .to_stream()
        .map(lambda key, count: (text(key.window.start), plus(key.key, count)))
        .group_by_key()
        .reduce(plus, "by-window")
        .to_stream()
        .to("out")
    ),
)
define(
    "window-table-group-by-window",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(TUMBLING_WITH_GRACE)
        .count("windowed")
        .group_by(lambda key, count: (text(key.window.start), count), **LONGS)
        .aggregate(lambda: 0, add, subtract, "sums", **LONG_VALUES)
        .to_stream()
        .to("out")
    ),
)
define(
    "sliding-table-group-by-key",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SLIDING_WITH_GRACE)
        .count("windowed")
        .group_by(lambda key, count: (key.key, count), **LONGS)
        .aggregate(lambda: 0, add, subtract, "sums", **LONG_VALUES)
        .to_stream()
        .to("out")
    ),
)
define(
    "session-table-group-by-key",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SESSIONS_WITH_GRACE)
        .count("sessions", retention=LONG_RETENTION)
        .group_by(lambda key, count: (key.key, count), **LONGS)
        .aggregate(lambda: 0, add, subtract, "sums", **LONG_VALUES)
        .to_stream()
        .to("out")
    ),
)
define(
    "window-in-window",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(TimeWindows.of_size(20).grace(50))
        .count("small")
        .to_stream()
        .select_key(lambda key, count: key.key)
        .group_by_key(**LONGS)
        .windowed_by(TUMBLING_WITH_GRACE)
        .reduce(lambda one, other: one + other, "large", **LONG_VALUES)
        .to_stream()
        .to("out")
    ),
)
define(
    "session-suppress-count",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SESSIONS_WITH_GRACE)
        .count("sessions")
        .suppress(UNTIL_WINDOW_CLOSES)
        .to_stream()
        .select_key(lambda key, count: key.key)
        .group_by_key(**LONGS)
        .count("counts")
        .to_stream()
        .to("out")
    ),
)
define(
    "window-filter",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(HOPPING_WITH_GRACE)
        .count("windowed")
        .filter(lambda key, count: count > 1)
        .map_values(lambda count: plus("n", count))
        .to_stream()
        .map(lambda key, value: (key.key, value))
        .to("out")
    ),
)
define(
    "join-then-window",
    "left right",
    lambda builder: (
        joins.left(builder)
        .join(joins.right(builder), plus, WINDOWS_WITH_GRACE)
        .group_by_key()
        .windowed_by(TUMBLING_WITH_GRACE)
        .count("windowed")
        .to_stream()
        .to("out")
    ),
)
define(
    "outer-join-then-reduce",
    "left right",
    lambda builder: (
        joins.left(builder)
        .outer_join(joins.right(builder), plus, WINDOWS_WITH_GRACE)
        .group_by_key()
        .reduce(lambda one, other: f"{one},{other}", "reduced")
        .to_stream()
        .to("out")
    ),
)


def stream_joins_its_count(builder: StreamsBuilder) -> None:
    records = stream(builder)
    counts = records.group_by_key().count("counts")
    records.join(counts, plus).to("out")


define("stream-joins-its-count", "in", stream_joins_its_count)
define(
    "merge-count-filter",
    "left right",
    lambda builder: (
        joins.left(builder)
        .merge(joins.right(builder))
        .group_by_key()
        .count("counts")
        .filter(lambda key, count: count % 3 != 0)
        .to_stream()
        .to("out")
    ),
)
define(
    "count-joins-table",
    "left right",
    lambda builder: (
        joins.left(builder).group_by_key().count("counts").left_join(tables.right(builder), plus).to_stream().to("out")
    ),
)
define(
    "three-tables",
    "left right in",
    lambda builder: (
        tables.left(builder)
        .outer_join(tables.right(builder), plus)
        .left_join(tables.table(builder), plus)
        .to_stream()
        .to("out")
    ),
)
define(
    "table-join-group-aggregate",
    "left right",
    lambda builder: (
        tables.left(builder)
        .outer_join(tables.right(builder), plus)
        .group_by(tables.by_first_letter)
        .aggregate(lambda: "", tables.add, tables.subtract, "grouped")
        .to_stream()
        .to("out")
    ),
)
define(
    "to-table-join",
    "left right",
    lambda builder: (
        joins.left(builder).map_values(upper).to_table("upper").join(tables.right(builder), plus).to_stream().to("out")
    ),
)


def split_and_merge(builder: StreamsBuilder) -> None:
    records = stream(builder)
    longs = records.filter(lambda key, value: is_long(value))
    others = records.filter_not(lambda key, value: is_long(value)).map_values(lambda value: plus("short", value))
    longs.merge(others).group_by_key().count("counts").to_stream().to("out")


define("split-and-merge", "in", split_and_merge)
define(
    "join-of-joins",
    "left right in",
    lambda builder: (
        joins.left(builder)
        .join(joins.right(builder), plus, WINDOWS_WITH_GRACE)
        .left_join(builder.stream("in"), plus, WINDOWS_WITH_GRACE)
        .to("out")
    ),
)
define(
    "enrich-then-window",
    "left right",
    lambda builder: (
        joins.left(builder)
        .left_join(joins.table(builder), plus)
        .group_by(lambda key, value: first(value))
        .windowed_by(SLIDING_WITH_GRACE)
        .count("windowed")
        .to_stream()
        .to("out")
    ),
)
