"""Results that are held back, until their window closes or for a time: java/SuppressTopologies.java."""

from kaspar.streams import BufferConfig, Suppressed
from tests.streams.compat.functions import first, plus, removed
from tests.streams.compat.topologies.aggregations import append
from tests.streams.compat.topologies.registry import define
from tests.streams.compat.topologies.windows import (
    HOPPING_WITH_GRACE,
    SESSIONS_WITH_GRACE,
    SLIDING_WITH_GRACE,
    TUMBLING,
    TUMBLING_WITH_GRACE,
    grouped,
)

UNTIL_WINDOW_CLOSES = Suppressed.until_window_closes()

define(
    "suppress-tumbling",
    "in",
    lambda builder: (
        grouped(builder).windowed_by(TUMBLING).count("windowed").suppress(UNTIL_WINDOW_CLOSES).to_stream().to("out")
    ),
)
define(
    "suppress-hopping-grace",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(HOPPING_WITH_GRACE)
        .aggregate(lambda: "", append, "windowed")
        .suppress(UNTIL_WINDOW_CLOSES)
        .to_stream()
        .to("out")
    ),
)
define(
    "suppress-sliding-grace",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SLIDING_WITH_GRACE)
        .count("windowed")
        .suppress(UNTIL_WINDOW_CLOSES)
        .to_stream()
        .to("out")
    ),
)
define(
    "suppress-session-grace",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(SESSIONS_WITH_GRACE)
        .count("sessions")
        .suppress(UNTIL_WINDOW_CLOSES)
        .to_stream()
        .to("out")
    ),
)
define(
    "suppress-time-limit",
    "in",
    lambda builder: grouped(builder).count("counts").suppress(Suppressed.until_time_limit(60)).to_stream().to("out"),
)
define(
    "suppress-time-limit-zero",
    "in",
    lambda builder: grouped(builder).count("counts").suppress(Suppressed.until_time_limit(0)).to_stream().to("out"),
)
define(
    "suppress-time-limit-windowed",
    "in",
    lambda builder: (
        grouped(builder)
        .windowed_by(TUMBLING_WITH_GRACE)
        .count("windowed")
        .suppress(Suppressed.until_time_limit(30))
        .to_stream()
        .to("out")
    ),
)
define(
    "suppress-source-table",
    "in",
    lambda builder: builder.table("in", "table").suppress(Suppressed.until_time_limit(60)).to_stream().to("out"),
)
define(
    "suppress-max-records",
    "in",
    lambda builder: (
        builder.table("in", "table")
        .suppress(Suppressed.until_time_limit(200, BufferConfig.max_records(1)))
        .to_stream()
        .to("out")
    ),
)
define(
    "suppress-max-bytes",
    "in",
    lambda builder: (
        builder.table("in", "table")
        .suppress(Suppressed.until_time_limit(200, BufferConfig.max_bytes(70)))
        .to_stream()
        .to("out")
    ),
)
define(
    "suppress-group-by",
    "in",
    lambda builder: (
        builder.table("in", "table")
        .suppress(Suppressed.until_time_limit(60))
        .group_by(lambda key, value: (first(value), value))
        .reduce(plus, removed, "reduced")
        .to_stream()
        .to("out")
    ),
)
