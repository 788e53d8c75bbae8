"""Joins of a stream with a table or a global table."""

from collections.abc import Callable
from typing import Any

import pytest

from kaspar.streams import KStream, StreamsBuilder, TopologyTestDriver, serdes
from tests.unit.streams.joins.runs import Emitted, plus, run

Records = list[tuple[str, Any, Any, int]]


def steps(kind: str, records: Records) -> list[Emitted]:
    builder = StreamsBuilder()
    join: Callable[..., KStream] = getattr(builder.stream("left"), kind)
    join(builder.table("right"), plus).to("out")
    return run(builder.build(), records).steps


def test_a_record_is_joined_with_the_current_value_of_its_key() -> None:
    records: Records = [
        ("left", "a", "l1", 1),
        ("right", "a", "r1", 2),
        ("left", "a", "l2", 3),
        ("right", "a", "r2", 4),
        ("left", "a", "l3", 5),
        ("right", "a", None, 6),
        ("left", "a", "l4", 7),
    ]
    assert steps("join", records) == [[], [], [("a", "l2+r1", 3)], [], [("a", "l3+r2", 5)], [], []]
    assert steps("left_join", records)[0] == [("a", "l1+None", 1)]
    assert steps("left_join", records)[-1] == [("a", "l4+None", 7)]


def test_a_joined_record_keeps_its_timestamp_whatever_the_tables_is() -> None:
    assert steps("join", [("right", "a", "r1", 100), ("left", "a", "l1", 3)])[-1] == [("a", "l1+r1", 3)]


@pytest.mark.parametrize(("kind", "emitted", "dropped"), [("join", [], 2), ("left_join", [(None, "l1+None", 1)], 1)])
def test_a_left_join_keeps_records_without_key_and_drops_those_without_value(
    kind: str, emitted: Emitted, dropped: int
) -> None:
    builder = StreamsBuilder()
    join: Callable[..., KStream] = getattr(builder.stream("left"), kind)
    join(builder.table("right"), plus).to("out")
    result = run(builder.build(), [("right", "a", "r1", 1), ("left", None, "l1", 1), ("left", "a", None, 1)])
    assert (result.emitted, result.dropped) == (emitted, {"null-key-or-value": dropped})


def test_a_joiner_may_take_the_key() -> None:
    builder = StreamsBuilder()
    stream, table = builder.stream("left"), builder.table("right")
    stream.join(table, lambda key, value, other: f"{key}:{value}+{other}", with_key=True).to("out")
    assert run(builder.build(), [("right", "a", "r", 1), ("left", "a", "l", 1)]).emitted == [("a", "a:l+r", 1)]


def test_a_table_without_store_is_computed_from_the_one_that_has_one() -> None:
    builder = StreamsBuilder()
    table = builder.table("right").map_values(str.upper).filter(lambda key, value: value != "NO")
    builder.stream("left").left_join(table, plus).to("out")
    topology = builder.build()
    assert [store.name for store in topology.stores] == ["right-STATE-STORE-0000000000"]
    records: Records = [
        ("right", "a", "yes", 1),
        ("left", "a", "l1", 1),
        ("right", "a", "no", 1),
        ("left", "a", "l2", 1),
    ]
    assert run(topology, records).emitted == [("a", "l1+YES", 1), ("a", "l2+None", 1)]


def test_an_aggregate_may_be_joined() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    counts = builder.stream("right").group_by_key().count()
    stream.join(counts, plus).to("out")
    assert run(builder.build(), [("right", "a", "r", 1), ("right", "a", "r", 1), ("left", "a", "l", 1)]).emitted == [
        ("a", "l+2", 1)
    ]


def test_a_stream_joined_with_its_own_table_sees_the_value_it_has_just_put() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    counts = stream.group_by_key().count()
    stream.join(counts, plus).to("out")
    assert run(builder.build(), [("left", "a", "1", 1), ("left", "a", "2", 1)]).emitted == [
        ("a", "1+1", 1),
        ("a", "2+2", 1),
    ]


def test_a_stream_with_new_keys_is_joined_by_these() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left").select_key(lambda key, value: value[0])
    stream.join(builder.table("right"), plus).to("out")
    assert run(builder.build(), [("right", "x", "r", 1), ("left", "a", "x1", 1)]).emitted == [("x", "x1+r", 1)]


def test_both_are_read_with_the_key_serde_of_the_table() -> None:
    builder = StreamsBuilder()
    table = builder.table("right", key_serde=serdes.integer())
    builder.stream("left").map(lambda key, value: (len(value), value)).join(table, plus).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("right", serdes.integer()).pipe_input(2, "r")
        driver.create_input_topic("left").pipe_input("a", "xx")
        assert driver.create_output_topic("out", serdes.integer()).read_key_value() == (2, "xx+r")


# --- global tables ----------------------------------------------------------------------------------------------------


def with_global_table(kind: str, records: Records) -> tuple[Emitted, dict[str, int]]:
    builder = StreamsBuilder()
    join: Callable[..., KStream] = getattr(builder.stream("left"), kind)

    def reference(key: Any, value: str) -> str | None:
        return None if value == "-" else value[0]

    join(builder.global_table("right"), plus, key_selector=reference).to("out")
    result = run(builder.build(), records)
    return result.emitted, dict(result.dropped)


GLOBAL: Records = [
    ("right", "x", "r1", 9),
    ("left", "a", "x1", 1),
    ("left", None, "x2", 2),
    ("left", "a", "y", 3),
    ("left", "a", "-", 4),
    ("left", "a", None, 5),
    ("right", "x", None, 6),
    ("left", "a", "x3", 7),
]


def test_a_global_table_is_joined_by_the_selected_key() -> None:
    assert with_global_table("join", GLOBAL) == ([("a", "x1+r1", 1), (None, "x2+r1", 2)], {"null-key-or-value": 2})


def test_a_left_join_with_a_global_table_keeps_what_selects_nothing() -> None:
    assert with_global_table("left_join", GLOBAL) == (
        [("a", "x1+r1", 1), (None, "x2+r1", 2), ("a", "y+None", 3), ("a", "-+None", 4), ("a", "x3+None", 7)],
        {"null-key-or-value": 1},
    )


def test_a_join_with_a_global_table_keeps_the_mark_of_new_keys() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left").select_key(lambda key, value: value[0])
    joined = stream.join(builder.global_table("right"), plus, key_selector=lambda key, value: key)
    assert joined.needs_repartition
    joined.group_by_key().count().to_stream().to("out", value_serde=serdes.json())
    assert run(builder.build(), [("right", "x", "r", 1), ("left", "a", "x1", 1)]).emitted == [("x", "1", 1)]


@pytest.mark.parametrize(("method", "joined"), [("join", []), ("left_join", [(None, "x+None")])])
def test_a_repartitioning_keeps_records_without_key_if_a_left_join_follows(
    method: str, joined: list[tuple[str | None, str]]
) -> None:
    builder = StreamsBuilder()
    moved = builder.stream("left").repartition()
    getattr(moved, method)(builder.table("right"), lambda value, other: f"{value}+{other}").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("left").pipe_input(None, "x")
        assert driver.create_output_topic("out").read_key_values_to_list() == joined
