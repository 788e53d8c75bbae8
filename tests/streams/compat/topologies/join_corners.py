"""Joins at the edges: java/JoinCornerTopologies.java."""

from kaspar.streams import JoinWindows, KStream, KTable, StreamsBuilder, TimeWindows
from tests.streams.compat.functions import is_long, plus, reference
from tests.streams.compat.topologies.joins import WINDOWS_WITH_GRACE, left, right
from tests.streams.compat.topologies.registry import Build, define
from tests.streams.compat.topologies.stateless import stream
from tests.streams.compat.topologies.tables import table

SAME_TIME = JoinWindows.of_time_difference(0)
SOON = JoinWindows.of_time_difference(50).before(0)
LONG_WINDOWS = TimeWindows.of_size(50).grace(100)


def outer_join(windows: JoinWindows) -> Build:
    return lambda builder: left(builder).outer_join(right(builder), plus, windows).to("out")


for name, windows in {
    "stream-outer-join-same-time": SAME_TIME,
    "stream-outer-join-same-time-grace": SAME_TIME.grace(20),
    "stream-outer-join-soon": SOON,
    "stream-outer-join-in-the-past": WINDOWS_WITH_GRACE.after(-20),
}.items():
    define(name, "left right", outer_join(windows))
define(
    "stream-left-join-later",
    "left right",
    lambda builder: left(builder).left_join(right(builder), plus, SOON.before(-10)).to("out"),
)


def referring(records: KStream) -> KStream:
    return records.select_key(lambda key, value: reference(value))


define(
    "stream-join-new-keys",
    "left right",
    lambda builder: referring(left(builder)).join(referring(right(builder)), plus, WINDOWS_WITH_GRACE).to("out"),
)
define(
    "stream-left-join-new-keys",
    "left right",
    lambda builder: referring(left(builder)).left_join(referring(right(builder)), plus, WINDOWS_WITH_GRACE).to("out"),
)
define(
    "stream-outer-join-new-keys",
    "left right",
    lambda builder: referring(left(builder)).outer_join(referring(right(builder)), plus, WINDOWS_WITH_GRACE).to("out"),
)


def self_outer_join(builder: StreamsBuilder) -> None:
    records = stream(builder)
    records.outer_join(records.filter(lambda key, value: is_long(value)), plus, WINDOWS_WITH_GRACE).to("out")


define("self-outer-join", "in", self_outer_join)
define(
    "table-left-join-without-stores",
    "left right",
    lambda builder: builder.table("left").left_join(builder.table("right"), plus).to_stream().to("out"),
)
define(
    "table-outer-join-filtered",
    "left right",
    lambda builder: (
        builder.table("left")
        .filter(lambda key, value: is_long(value))
        .outer_join(builder.table("right").filter_not(lambda key, value: is_long(value)), plus)
        .to_stream()
        .to("out")
    ),
)
define(
    "table-left-join-filtered-after",
    "left right",
    lambda builder: (
        builder.table("left")
        .left_join(builder.table("right"), plus)
        .filter(lambda key, value: len(value) > 3)
        .to_stream()
        .to("out")
    ),
)
define(
    "foreign-key-join-filtered",
    "left right",
    lambda builder: (
        builder.table("left")
        .filter(lambda key, value: is_long(value))
        .join(
            builder.table("right").map_values(lambda value: plus(value, "m")), plus, foreign_key=lambda value: value[1]
        )
        .to_stream()
        .to("out")
    ),
)
define(
    "foreign-key-left-join-of-join",
    "left right third",
    lambda builder: (
        builder.table("left")
        .outer_join(builder.table("right"), plus)
        .left_join(builder.table("third"), plus, foreign_key=reference)
        .to_stream()
        .to("out")
    ),
)


def foreign_key_join_itself(builder: StreamsBuilder) -> None:
    rows = table(builder)
    rows.left_join(rows, plus, foreign_key=reference).to_stream().to("out")


define("foreign-key-join-itself", "in", foreign_key_join_itself)


def windowed(records: KStream, store: str) -> KTable:
    return records.group_by_key().windowed_by(LONG_WINDOWS).count(store)


define(
    "windowed-table-outer-join",
    "left right",
    lambda builder: (
        windowed(left(builder), "left-counts")
        .outer_join(windowed(right(builder), "right-counts"), plus)
        .to_stream(lambda key, value: f"{key.key}@{key.window.start}")
        .to("out")
    ),
)
