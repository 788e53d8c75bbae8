"""A topology in words, in Kafka's layout, and as a picture."""

from xml.etree import ElementTree

import pytest

from kaspar.streams import StreamsBuilder, Topology, TopologyError


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(str.split)
    words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
    return builder.build()


def test_description_has_the_layout_of_kafkas() -> None:
    lines = word_count().describe().splitlines()
    assert lines[:4] == [
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])",
        "      --> KSTREAM-FLATMAPVALUES-0000000001",
    ]
    assert "    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [counts])" in lines
    assert any(line.endswith("(topic: word-counts)") for line in lines)


def test_description_says_where_rows_are_shuffled() -> None:
    assert "Shuffled by key: counts-repartition --> KSTREAM-AGGREGATE-0000000003" in word_count().describe()


def test_global_tables_are_sub_topologies_of_their_own() -> None:
    builder = StreamsBuilder()
    rates = builder.global_table("rates", "rates")
    builder.stream("in").join(rates, lambda one, other: one, key_selector=lambda key, value: value).to("out")
    assert "Sub-topology: 1 for global store (will not generate tasks)" in builder.build().describe()


def test_the_picture_has_every_step_and_is_well_formed() -> None:
    topology = word_count()
    root = ElementTree.fromstring(topology.picture())
    drawn = {title.text for title in root.iter("{http://www.w3.org/2000/svg}title")}
    assert drawn == {node.name for plan in topology.sub_topologies for node in plan.nodes}


def test_names_with_markup_are_harmless_in_the_picture() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(str.upper, name="<script>&").to("out")
    ElementTree.fromstring(builder.build().picture())


def test_a_topology_that_reads_nothing_is_refused() -> None:
    with pytest.raises(TopologyError, match="reads no topic"):
        StreamsBuilder().build()


def test_a_topic_is_read_once() -> None:
    builder = StreamsBuilder()
    builder.stream("in")
    with pytest.raises(TopologyError, match="read it once"):
        builder.table("in")
