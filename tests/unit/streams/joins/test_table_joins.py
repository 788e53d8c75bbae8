"""Joins of two tables by key."""

from collections.abc import Callable
from typing import Any

import pytest

from kaspar.streams import KTable, StreamsBuilder, TimeWindows, TopologyTestDriver, serdes
from tests.unit.streams.joins.runs import Emitted, plus, run

Records = list[tuple[str, Any, Any, int]]


def steps(kind: str, records: Records, store: str | None = None) -> list[Emitted]:
    builder = StreamsBuilder()
    join: Callable[..., KTable] = getattr(builder.table("left"), kind)
    join(builder.table("right"), plus, store).to_stream().to("out")
    return run(builder.build(), records).steps


CHANGES: Records = [
    ("left", "a", "l1", 1),
    ("right", "a", "r1", 2),
    ("left", "a", "l2", 3),
    ("right", "a", "r2", 4),
    ("left", "a", None, 5),
    ("right", "a", "r3", 6),
    ("right", "a", None, 7),
]


@pytest.mark.parametrize("store", [None, "joined"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("join", [[], ["l1+r1"], ["l2+r1"], ["l2+r2"], [None], [], []]),
        ("left_join", [["l1+None"], ["l1+r1"], ["l2+r1"], ["l2+r2"], [None], [], []]),
        ("outer_join", [["l1+None"], ["l1+r1"], ["l2+r1"], ["l2+r2"], ["None+r2"], ["None+r3"], [None]]),
    ],
)
def test_a_change_of_either_table_changes_the_joined_one(
    kind: str, values: list[list[str | None]], store: str | None
) -> None:
    expected = [[("a", value, time) for value in step] for time, step in enumerate(values, 1)]
    assert steps(kind, CHANGES, store) == expected


def test_a_result_has_the_later_timestamp() -> None:
    assert steps("join", [("left", "a", "l1", 10), ("right", "a", "r1", 3)])[1] == [("a", "l1+r1", 10)]
    assert steps("outer_join", [("left", "a", "l1", 10), ("right", "b", "r1", 3)])[1] == [("b", "None+r1", 3)]


def test_deleting_what_is_not_there_is_passed_on_only_by_joins_that_have_the_other_value() -> None:
    """Kafka's inner join does not ask for old values, so it cannot know that the result has no such key."""
    assert steps("join", [("left", "a", None, 1)]) == [[]]
    assert steps("join", [("right", "a", "r1", 1), ("left", "a", None, 2)])[1] == [("a", None, 2)]
    assert steps("left_join", [("left", "a", None, 1)]) == [[]]
    assert steps("outer_join", [("right", "a", None, 1)]) == [[]]


def test_records_without_key_are_dropped() -> None:
    builder = StreamsBuilder()
    builder.table("left").outer_join(builder.table("right"), plus).to_stream().to("out")
    result = run(builder.build(), [("left", None, "l1", 1), ("right", None, "r1", 1)])
    assert (result.emitted, result.dropped) == ([], {"null-key": 2})


def test_the_store_of_a_result_has_its_values_and_timestamps() -> None:
    builder = StreamsBuilder()
    builder.table("left").join(builder.table("right"), plus, "joined")
    with TopologyTestDriver(builder.build()) as driver:
        left, right = driver.create_input_topic("left"), driver.create_input_topic("right")
        left.pipe_input("a", "l1", 10)
        right.pipe_input("a", "r1", 5)
        assert driver.store("joined").get("a") == ("l1+r1", 10)
        left.pipe_input("a", None, 11)
        assert driver.store("joined").get("a") is None


@pytest.mark.parametrize("store", [None, "joined"])
@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_an_aggregate_of_a_join_withdraws_old_results(kind: str, store: str | None) -> None:
    builder = StreamsBuilder()
    join: Callable[..., KTable] = getattr(builder.table("left"), kind)
    joined = join(builder.table("right"), plus, store)
    grouped = joined.group_by(lambda key, value: ("all", value), value_serde=serdes.text())
    grouped.aggregate(
        lambda: "",
        lambda key, value, total: " ".join(sorted([*total.split(), value])),
        lambda key, value, total: " ".join(each for each in total.split() if each != value),
    ).to_stream().to("out")
    records: Records = [
        ("left", "a", "l1", 1),
        ("left", "b", "l2", 2),
        ("right", "a", "r1", 3),
        ("right", "b", "r2", 4),
        ("left", "a", None, 5),
        ("right", "b", None, 6),
    ]
    result = run(builder.build(), records)
    expected = {"join": "", "left_join": "l2+None", "outer_join": "None+r1 l2+None"}
    assert result.emitted[-1] == ("all", expected[kind], 6)
    assert "None+r2" not in str(result.emitted)


def test_a_join_without_store_can_be_joined_again() -> None:
    builder = StreamsBuilder()
    one = builder.table("left").outer_join(builder.table("right"), plus)
    one.left_join(builder.table("third"), lambda value, other: f"({value})+{other}").to_stream().to("out")
    topology = builder.build()
    assert len(list(topology.stores)) == 3
    records: Records = [
        ("left", "a", "l1", 1),
        ("third", "a", "t1", 2),
        ("right", "a", "r1", 9),
        ("third", "a", "t2", 4),
    ]
    assert run(topology, records).emitted == [
        ("a", "(l1+None)+None", 1),
        ("a", "(l1+None)+t1", 2),
        ("a", "(l1+r1)+t1", 9),
        ("a", "(l1+r1)+t2", 9),
    ]


def test_a_filtered_table_sends_no_tombstone_for_what_never_passed() -> None:
    builder = StreamsBuilder()
    filtered = builder.table("left", "rows").filter(lambda key, value: len(value) > 1)
    filtered.join(builder.table("right"), plus).to_stream().to("out")
    records: Records = [("right", "a", "r", 1), ("left", "a", "x", 2), ("left", "a", "xy", 3), ("left", "a", "x", 4)]
    assert run(builder.build(), records).steps[1:] == [[], [("a", "xy+r", 3)], [("a", None, 4)]]


def test_a_table_may_be_joined_with_one_made_of_it() -> None:
    builder = StreamsBuilder()
    table = builder.table("left")
    table.join(table.map_values(str.upper), plus).to_stream().to("out")
    assert run(builder.build(), [("left", "a", "x", 1), ("left", "a", "y", 2)]).emitted == [
        ("a", "x+X", 1),
        ("a", "x+X", 1),
        ("a", "y+Y", 2),
        ("a", "y+Y", 2),
    ]


def test_a_joiner_may_take_the_key() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, lambda key, value, other: f"{key}:{value}+{other}", with_key=True).to_stream().to("out")
    records: Records = [("left", "a", "l", 1), ("right", "a", "r", 1), ("left", "a", "m", 1)]
    assert run(builder.build(), records).emitted == [("a", "a:l+r", 1), ("a", "a:m+r", 1)]


def test_windowed_tables_are_joined_window_by_window() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size(10).grace(100)
    left = builder.stream("left").group_by_key().windowed_by(windows).count()
    right = builder.stream("right").group_by_key().windowed_by(windows).count()
    left.join(right, plus, "joined").to_stream(lambda key, value: f"{key.key}@{key.window.start}").to("out")
    records: Records = [
        ("left", "a", "l", 1),
        ("left", "a", "l", 2),
        ("right", "a", "r", 11),
        ("right", "a", "r", 9),
        ("left", "a", "l", 3),
    ]
    assert run(builder.build(), records).emitted == [("a@0", "2+1", 9), ("a@0", "3+1", 9)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mine", {"mine-join-this", "mine-join-other", "mine"}),
        (None, {"KTABLE-JOINTHIS-0000000006", "KTABLE-JOINOTHER-0000000007", "KTABLE-MERGE-0000000008"}),
    ],
)
def test_steps_have_kafkas_names(name: str | None, expected: set[str]) -> None:
    builder = StreamsBuilder()
    builder.table("left").join(builder.table("right"), plus, name=name)
    assert expected <= {node.name for node in builder.build().sub_topologies[0].nodes}
