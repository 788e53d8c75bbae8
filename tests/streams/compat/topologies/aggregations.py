"""Streams to tables, one aggregate for each key: java/AggregationTopologies.java."""

from kaspar.streams import KTable, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from kaspar.streams.dsl.grouped import CogroupedKStream
from tests.streams.compat.functions import appended, first, letters, plus, removed
from tests.streams.compat.topologies.registry import define
from tests.streams.compat.topologies.stateless import stream


def append(key: str, value: str, aggregate: str) -> str | None:
    return appended(aggregate, value)


def remove(key: str, value: str, aggregate: str) -> str:
    return removed(aggregate, value)


define("count", "in", lambda builder: stream(builder).group_by_key().count("counts").to_stream().to("out"))
define("count-without-name", "in", lambda builder: stream(builder).group_by_key().count().to_stream().to("out"))
define(
    "group-by-count",
    "in",
    lambda builder: stream(builder).group_by(lambda key, value: first(value)).count("counts").to_stream().to("out"),
)
define(
    "flat-map-group-by-count",
    "in",
    lambda builder: (
        stream(builder)
        .flat_map_values(letters)
        .group_by(lambda key, letter: letter)
        .count("counts")
        .to_stream()
        .to("out")
    ),
)
define("reduce", "in", lambda builder: stream(builder).group_by_key().reduce(appended, "reduced").to_stream().to("out"))
define(
    "aggregate",
    "in",
    lambda builder: stream(builder).group_by_key().aggregate(lambda: "", append, "aggregated").to_stream().to("out"),
)


def cogrouped(builder: StreamsBuilder) -> CogroupedKStream[KTable]:
    left = builder.stream("left").group_by_key()
    right = builder.stream("right").group_by_key()
    return left.cogroup(append).cogroup(right, remove)


def cogroup_repartitioned(builder: StreamsBuilder) -> None:
    left = builder.stream("left").group_by(lambda key, value: first(value))
    right = builder.stream("right").group_by_key()
    left.cogroup(append).cogroup(right, remove).aggregate(lambda: "", "cogrouped").to_stream().to("out")


define(
    "cogroup",
    "left right",
    lambda builder: cogrouped(builder).aggregate(lambda: "", "cogrouped").to_stream().to("out"),
)
define("cogroup-repartitioned", "left right", cogroup_repartitioned)
define(
    "cogroup-tumbling",
    "left right",
    lambda builder: (
        cogrouped(builder)
        .windowed_by(TimeWindows.of_size(100).grace(50))
        .aggregate(lambda: "", "cogrouped")
        .to_stream()
        .to("out")
    ),
)
define(
    "cogroup-sliding",
    "left right",
    lambda builder: (
        cogrouped(builder)
        .windowed_by(SlidingWindows.of_time_difference(100).grace(50))
        .aggregate(lambda: "", "cogrouped")
        .to_stream()
        .to("out")
    ),
)
define(
    "cogroup-session",
    "left right",
    lambda builder: (
        cogrouped(builder)
        .windowed_by(SessionWindows.of_inactivity_gap(100).grace(50))
        .aggregate(lambda: "", lambda key, left, right: plus(left, right), "cogrouped")
        .to_stream()
        .to("out")
    ),
)
