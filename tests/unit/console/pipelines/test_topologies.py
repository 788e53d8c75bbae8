"""The graph of a streams program is read from its description."""

import pytest

from kaspar.console.pipelines.topologies import NodeKind, SubTopology, read_topology
from kaspar.streams import StreamsBuilder


def word_count() -> str:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: line.split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
    return builder.build().describe()


def node_names(sub_topology: SubTopology) -> set[str]:
    return {node.name for node in sub_topology.nodes}


def test_every_step_of_a_program_is_in_the_graph() -> None:
    description = word_count()
    (graph,) = read_topology(description)
    named = {line.split(": ")[1].split(" ")[0] for line in description.splitlines() if " (" in line}
    assert node_names(graph) == named
    (source,) = (node for node in graph.nodes if node.kind is NodeKind.SOURCE and "lines" in node.topics)
    assert source.depth == 0
    assert {topic for node in graph.nodes if node.kind is NodeKind.SINK for topic in node.topics} >= {"word-counts"}
    assert {store for node in graph.nodes for store in node.stores} == {"counts"}
    assert graph.shuffled != ()


def test_a_step_stands_below_all_of_its_parents() -> None:
    (graph,) = read_topology(word_count())
    depths = {node.name: node.depth for node in graph.nodes}
    edges = [(node.name, child) for node in graph.nodes for child in node.children]
    assert edges
    assert all(depths[child] > depths[parent] for parent, child in edges)


def test_global_tables_are_sub_topologies_of_their_own() -> None:
    builder = StreamsBuilder()
    rates = builder.global_table("rates", "rates")
    builder.stream("in").join(rates, lambda one, other: one, key_selector=lambda key, value: value).to("out")
    own, of_table = read_topology(builder.build().describe())
    assert (own.is_global, of_table.is_global) == (False, True)


@pytest.mark.parametrize("text", ["", "copies orders to audit", "Sub-topology: 0", "Topologies:\nnonsense"])
def test_another_text_has_no_graph(text: str) -> None:
    assert read_topology(text) == ()


def test_a_text_with_a_cycle_still_ends() -> None:
    text = "\n".join(
        [
            "Topologies:",
            "   Sub-topology: 0",
            "    Processor: a (stores: [])",
            "      --> b, nowhere",
            "    Processor: b (stores: [])",
            "      --> a",
        ]
    )
    (graph,) = read_topology(text)
    assert {node.name: (node.depth, node.children) for node in graph.nodes} == {"a": (0, ("b",)), "b": (1, ("a",))}


def test_a_graph_that_nobody_could_look_at_is_left_out() -> None:
    nodes = [f"    Processor: step-{number} (stores: [])" for number in range(2001)]
    assert read_topology("\n".join(["Topologies:", "   Sub-topology: 0", *nodes])) == ()
