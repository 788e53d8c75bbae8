"""One record at a time, without state: java/StatelessTopologies.java."""

from kaspar.streams import KStream, StreamsBuilder
from tests.streams.compat.functions import first, is_long, letters, plus, text, upper
from tests.streams.compat.topologies.registry import define


def stream(builder: StreamsBuilder) -> KStream:
    return builder.stream("in")


define("map", "in", lambda builder: stream(builder).map(lambda key, value: (value, plus(key, value))).to("out"))
define("map-values", "in", lambda builder: stream(builder).map_values(upper).to("out"))
define("map-values-with-key", "in", lambda builder: stream(builder).map_values(plus, with_key=True).to("out"))
define(
    "flat-map",
    "in",
    lambda builder: stream(builder).flat_map(lambda key, value: [(letter, key) for letter in letters(value)]).to("out"),
)
define("flat-map-values", "in", lambda builder: stream(builder).flat_map_values(letters).to("out"))


def filters(builder: StreamsBuilder) -> None:
    records = stream(builder)
    records.filter(lambda key, value: is_long(value)).to("out")
    records.filter_not(lambda key, value: is_long(value)).to("out-not")


define("filter", "in", filters)
define("select-key", "in", lambda builder: stream(builder).select_key(lambda key, value: first(value)).to("out"))


def split(builder: StreamsBuilder) -> None:
    branches = (
        stream(builder)
        .split(name="by")
        .branch(lambda key, value: first(value) == "a", "a")
        .branch(lambda key, value: is_long(value), "long")
        .default_branch("other")
    )
    branches["a"].to("out-a")
    branches["long"].to("out-long")
    branches["other"].to("out-other")


def split_without_default(builder: StreamsBuilder) -> None:
    branches = (
        stream(builder)
        .split(name="by")
        .branch(lambda key, value: first(value) == "a", "a")
        .branch(lambda key, value: is_long(value), "long")
        .no_default_branch()
    )
    branches["a"].to("out-a")
    branches["long"].to("out-long")


define("split", "in", split)
define("split-without-default", "in", split_without_default)
define("merge", "left right", lambda builder: builder.stream("left").merge(builder.stream("right")).to("out"))
define("peek", "in", lambda builder: stream(builder).peek(plus).to("out"))
define(
    "topic-extractor",
    "in",
    lambda builder: stream(builder).to(lambda key, value, context: "out-long" if is_long(value) else "out-short"),
)


def two_sinks(builder: StreamsBuilder) -> None:
    records = stream(builder)
    records.to("out-before")
    records.map_values(text).to("out-after")
    records.to("out-again")


define("two-sinks", "in", two_sinks)
define(
    "repartition",
    "in",
    lambda builder: stream(builder).select_key(lambda key, value: value).repartition(name="by-value").to("out"),
)
