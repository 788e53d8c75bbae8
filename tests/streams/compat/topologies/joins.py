"""Streams joined with streams, tables and global tables: java/JoinTopologies.java."""

from kaspar.streams import GlobalKTable, JoinWindows, KStream, KTable, StreamsBuilder
from tests.streams.compat.functions import first, is_long, plus, reference
from tests.streams.compat.topologies.registry import Build, define
from tests.streams.compat.topologies.stateless import stream

WINDOWS = JoinWindows.of_time_difference(50)
WINDOWS_WITH_GRACE = WINDOWS.grace(60)


def left(builder: StreamsBuilder) -> KStream:
    return builder.stream("left")


def right(builder: StreamsBuilder) -> KStream:
    return builder.stream("right")


def table(builder: StreamsBuilder) -> KTable:
    return builder.table("right", "table")


def global_table(builder: StreamsBuilder) -> GlobalKTable:
    return builder.global_table("right", "global")


def inner(windows: JoinWindows) -> Build:
    return lambda builder: left(builder).join(right(builder), plus, windows).to("out")


def left_outer(windows: JoinWindows) -> Build:
    return lambda builder: left(builder).left_join(right(builder), plus, windows).to("out")


def full_outer(windows: JoinWindows) -> Build:
    return lambda builder: left(builder).outer_join(right(builder), plus, windows).to("out")


define("stream-join", "left right", inner(WINDOWS))
define("stream-join-grace", "left right", inner(WINDOWS_WITH_GRACE))
define("stream-join-after", "left right", inner(WINDOWS_WITH_GRACE.before(0)))
define("stream-left-join", "left right", left_outer(WINDOWS))
define("stream-left-join-grace", "left right", left_outer(WINDOWS_WITH_GRACE))
define("stream-left-join-after", "left right", left_outer(WINDOWS_WITH_GRACE.before(10)))
define("stream-outer-join", "left right", full_outer(WINDOWS))
define("stream-outer-join-grace", "left right", full_outer(WINDOWS_WITH_GRACE))
define("stream-outer-join-before", "left right", full_outer(WINDOWS_WITH_GRACE.after(0)))
define(
    "stream-join-new-key",
    "left right",
    lambda builder: (
        left(builder)
        .select_key(lambda key, value: first(value))
        .join(right(builder), plus, WINDOWS_WITH_GRACE)
        .to("out")
    ),
)


def self_join(builder: StreamsBuilder) -> None:
    records = stream(builder)
    records.join(records, plus, WINDOWS_WITH_GRACE).to("out")


define("self-join", "in", self_join)
define("stream-table-join", "left right", lambda builder: left(builder).join(table(builder), plus).to("out"))
define("stream-table-left-join", "left right", lambda builder: left(builder).left_join(table(builder), plus).to("out"))
define(
    "stream-table-join-with-key",
    "left right",
    lambda builder: (
        left(builder)
        .join(table(builder), lambda key, value, other: plus(key, plus(value, other)), with_key=True)
        .to("out")
    ),
)
define(
    "stream-table-join-new-key",
    "left right",
    lambda builder: left(builder).select_key(lambda key, value: first(value)).join(table(builder), plus).to("out"),
)
define(
    "stream-table-left-join-new-key",
    "left right",
    lambda builder: (
        left(builder).select_key(lambda key, value: reference(value)).left_join(table(builder), plus).to("out")
    ),
)
define(
    "stream-table-join-filtered",
    "left right",
    lambda builder: left(builder).join(table(builder).filter(lambda key, value: is_long(value)), plus).to("out"),
)
define(
    "stream-global-table-join",
    "left right",
    lambda builder: (
        left(builder).join(global_table(builder), plus, key_selector=lambda key, value: reference(value)).to("out")
    ),
)
define(
    "stream-global-table-left-join",
    "left right",
    lambda builder: (
        left(builder).left_join(global_table(builder), plus, key_selector=lambda key, value: reference(value)).to("out")
    ),
)
