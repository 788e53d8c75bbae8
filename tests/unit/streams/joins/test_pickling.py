"""Topologies with joins travel to Spark's workers."""

from collections.abc import Callable

import pytest
from pyspark import cloudpickle

from kaspar.streams import JoinWindows, StreamsBuilder, Topology
from tests.unit.streams.joins.runs import plus, run


def stream_join() -> Topology:
    builder = StreamsBuilder()
    builder.stream("left").outer_join(builder.stream("right"), plus, JoinWindows.of_time_difference(5)).to("out")
    return builder.build()


def stream_table_join() -> Topology:
    builder = StreamsBuilder()
    builder.stream("left").left_join(builder.table("right").map_values(str.upper), plus).to("out")
    return builder.build()


def table_join() -> Topology:
    builder = StreamsBuilder()
    builder.table("left").outer_join(builder.table("right"), plus).to_stream().to("out")
    return builder.build()


def foreign_key_join() -> Topology:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.left_join(right, plus, foreign_key=lambda value: value[0]).to_stream().to("out")
    return builder.build()


@pytest.mark.parametrize("build", [stream_join, stream_table_join, table_join, foreign_key_join])
def test_a_topology_with_a_join_can_be_pickled(build: Callable[[], Topology]) -> None:
    topology = build()
    records = [("right", "a", "r", 1), ("left", "a", "a1", 1), ("left", "b", "b1", 100)]
    copy: Topology = cloudpickle.loads(cloudpickle.dumps(topology))  # type: ignore[no-untyped-call]
    assert run(copy, records).steps == run(topology, records).steps != [[], [], []]
