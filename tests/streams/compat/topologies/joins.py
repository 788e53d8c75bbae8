"""Streams joined with streams, tables and global tables: java/JoinTopologies.java."""

from kaspar.streams import GlobalKTable, JoinWindows, KStream, KTable, StreamsBuilder
from tests.streams.compat.functions import first, is_long, plus, reference
from tests.streams.compat.topologies.registry import define
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


for name, windows in {
    "stream-join": WINDOWS,
    "stream-join-grace": WINDOWS_WITH_GRACE,
    "stream-join-after": WINDOWS_WITH_GRACE.before(0),
}.items():
    define(
        name,
        "left right",
        lambda builder, windows=windows: left(builder).join(right(builder), plus, windows).to("out"),
    )
for name, windows in {
    "stream-left-join": WINDOWS,
    "stream-left-join-grace": WINDOWS_WITH_GRACE,
    "stream-left-join-after": WINDOWS_WITH_GRACE.before(10),
}.items():
    define(
        name,
        "left right",
        lambda builder, windows=windows: left(builder).left_join(right(builder), plus, windows).to("out"),
    )
for name, windows in {
    "stream-outer-join": WINDOWS,
    "stream-outer-join-grace": WINDOWS_WITH_GRACE,
    "stream-outer-join-before": WINDOWS_WITH_GRACE.after(0),
}.items():
    define(
        name,
        "left right",
        lambda builder, windows=windows: left(builder).outer_join(right(builder), plus, windows).to("out"),
    )
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
