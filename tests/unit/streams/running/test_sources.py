"""What a sub-topology reads, as options of the data source (kaspar.streams.running.sources)."""

import json
import re

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.streams import StreamsBuilder, TopologyError
from kaspar.streams.running.sources import Sources


def sources(builder: StreamsBuilder, *, reset: str = "earliest", number: int = 0) -> Sources:
    return Sources(builder.build().sub_topologies[number], "app", reset)


def test_all_topics_begin_where_the_settings_say() -> None:
    builder = StreamsBuilder()
    builder.stream(["b", "a"]).to("out")
    options = sources(builder, reset="latest").options({"a": 1, "b": 2}, {})
    assert options == {"subscribe": "a,b", "startingOffsets": "latest"}


def test_a_source_may_begin_elsewhere() -> None:
    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b", offset_reset="latest")).to("out")
    starting = json.loads(sources(builder).options({"a": 1, "b": 1}, {})["startingOffsets"])
    assert starting == {"a": "earliest", "b": "latest"}


def test_committed_offsets_are_taken_over() -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("out")
    committed = {TopicPartition("a", 1): 17, TopicPartition("other", 0): 3}
    starting = json.loads(sources(builder).options({"a": 2}, committed)["startingOffsets"])
    assert starting == {"a": {"0": -2, "1": 17}}


def test_a_repartition_topic_begins_at_its_start() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count("counts").to_stream()
    counts.select_key(lambda key, value: value).repartition(name="again").group_by_key().count("second")
    options = sources(builder, reset="latest", number=1).options({"app-again-repartition": 2}, {})
    assert options == {"subscribe": "app-again-repartition", "startingOffsets": "earliest"}


def test_a_pattern_subscribes_to_topics_of_others_only() -> None:
    builder = StreamsBuilder()
    builder.stream(pattern="(app|log).*").to("out")
    pattern = sources(builder).options({}, {})["subscribePattern"]
    names = ["app-events", "app-counts-changelog", "logs", "app-x-repartition", "other"]
    assert [name for name in names if re.fullmatch(pattern, name)] == ["app-events", "logs"]


def test_sources_of_a_join_are_several() -> None:
    one, joined, many = StreamsBuilder(), StreamsBuilder(), StreamsBuilder()
    one.stream("a").to("out")
    joined.stream("a").join(joined.table("b"), lambda value, other: value).to("out")
    many.stream(pattern="log.*").to("out")
    assert [sources(each).are_several for each in (one, joined, many)] == [False, True, True]


@pytest.mark.parametrize("reset", ["none", "by_duration"])
def test_a_source_begins_at_the_beginning_or_at_the_end(reset: str) -> None:
    for add in (StreamsBuilder().stream, StreamsBuilder().table):
        with pytest.raises(TopologyError, match=f"offset_reset must be earliest or latest, not '{reset}'"):
            add("a", offset_reset=reset)
