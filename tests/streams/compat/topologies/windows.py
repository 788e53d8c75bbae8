"""Windows of every kind: java/WindowTopologies.java."""

from datetime import timedelta

from kaspar.streams import EmitStrategy, KTable, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from kaspar.streams.dsl.grouped import KGroupedStream
from kaspar.streams.dsl.windowed import WindowedKStream
from tests.streams.compat.functions import appended, first, plus
from tests.streams.compat.topologies.aggregations import append
from tests.streams.compat.topologies.registry import Build, define
from tests.streams.compat.topologies.stateless import stream

TUMBLING = TimeWindows.of_size(100)
TUMBLING_WITH_GRACE = TUMBLING.grace(50)
HOPPING = TimeWindows.of_size(100).advance_by(40)
HOPPING_WITH_GRACE = TimeWindows.of_size(100).grace(50).advance_by(50)
SLIDING = SlidingWindows.of_time_difference(50)
SLIDING_WITH_GRACE = SLIDING.grace(100)
SESSIONS = SessionWindows.of_inactivity_gap(50)
SESSIONS_WITH_GRACE = SESSIONS.grace(100)
LONG_RETENTION = timedelta(days=1)


def grouped(builder: StreamsBuilder) -> KGroupedStream[KTable]:
    return stream(builder).group_by_key()


def count(windows: TimeWindows | SlidingWindows) -> Build:
    return lambda builder: grouped(builder).windowed_by(windows).count("windowed").to_stream().to("out")


def aggregate(windows: TimeWindows | SlidingWindows) -> Build:
    return lambda builder: (
        grouped(builder).windowed_by(windows).aggregate(lambda: "", append, "windowed").to_stream().to("out")
    )


define("tumbling-count", "in", count(TUMBLING))
define("tumbling-count-grace", "in", count(TUMBLING_WITH_GRACE))
define("hopping-count", "in", count(HOPPING))
define("sliding-count", "in", count(SLIDING))
define("tumbling-aggregate", "in", aggregate(TUMBLING_WITH_GRACE))
define("hopping-aggregate-grace", "in", aggregate(HOPPING_WITH_GRACE))
define("sliding-aggregate-grace", "in", aggregate(SLIDING_WITH_GRACE))
define(
    "tumbling-reduce",
    "in",
    lambda builder: (
        grouped(builder).windowed_by(TUMBLING_WITH_GRACE).reduce(appended, "windowed").to_stream().to("out")
    ),
)
define(
    "sliding-reduce-grace",
    "in",
    lambda builder: grouped(builder).windowed_by(SLIDING_WITH_GRACE).reduce(plus, "windowed").to_stream().to("out"),
)
define(
    "windowed-group-by-count",
    "in",
    lambda builder: (
        stream(builder)
        .group_by(lambda key, value: first(value))
        .windowed_by(TUMBLING_WITH_GRACE)
        .count("windowed")
        .to_stream()
        .to("out")
    ),
)
define(
    "session-count",
    "in",
    lambda builder: grouped(builder).windowed_by(SESSIONS).count("sessions").to_stream().to("out"),
)
define(
    "session-count-grace",
    "in",
    lambda builder: grouped(builder).windowed_by(SESSIONS_WITH_GRACE).count("sessions").to_stream().to("out"),
)
define(
    "session-reduce",
    "in",
    lambda builder: grouped(builder).windowed_by(SESSIONS_WITH_GRACE).reduce(plus, "sessions").to_stream().to("out"),
)
define(
    "session-aggregate",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SESSIONS_WITH_GRACE)
        .aggregate(lambda: "", append, lambda key, left, right: plus(left, right), "sessions")
        .to_stream()
        .to("out")
    ),
)


def final(builder: StreamsBuilder, windows: TimeWindows | SlidingWindows) -> WindowedKStream[KTable]:
    return grouped(builder).windowed_by(windows).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)


define(
    "tumbling-on-close",
    "in",
    lambda builder: (
        final(builder, TUMBLING_WITH_GRACE).count("windowed", retention=LONG_RETENTION).to_stream().to("out")
    ),
)
define(
    "hopping-on-close",
    "in",
    lambda builder: (
        final(builder, HOPPING)
        .aggregate(lambda: "", append, "windowed", retention=LONG_RETENTION)
        .to_stream()
        .to("out")
    ),
)
define(
    "sliding-on-close",
    "in",
    lambda builder: (
        final(builder, SLIDING_WITH_GRACE).count("windowed", retention=LONG_RETENTION).to_stream().to("out")
    ),
)
define(
    "session-on-close",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SESSIONS_WITH_GRACE)
        .emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
        .count("sessions", retention=LONG_RETENTION)
        .to_stream()
        .to("out")
    ),
)
