"""Joins of two tables by a foreign key: rows of `left` refer to rows of `right` by the first letter of their value."""

from collections.abc import Callable
from typing import Any

import pytest

from kaspar.streams import KTable, StreamsBuilder, Topology, TopologyTestDriver, serdes
from kaspar.streams.operators.subscriptions import (
    Instruction,
    Response,
    ResponseSerde,
    Subscription,
    SubscriptionSerde,
    hash_of,
)
from tests.unit.streams.joins.runs import Emitted, plus, run

Records = list[tuple[str, Any, Any, int]]


def reference(value: str) -> str | None:
    return None if value.startswith("-") else value[0]


def joined(kind: str, store: str | None = None) -> Topology:
    builder = StreamsBuilder()
    join: Callable[..., KTable] = getattr(builder.table("left", "rows"), kind)
    join(builder.table("right"), plus, store, foreign_key=reference).to_stream().to("out")
    return builder.build()


def steps(kind: str, records: Records, store: str | None = None) -> list[Emitted]:
    return run(joined(kind, store), records).steps


@pytest.mark.parametrize("store", [None, "joined"])
@pytest.mark.parametrize(
    ("kind", "first"),
    [("join", []), ("left_join", [("a", "x1+None", 1)])],
)
def test_rows_are_joined_whichever_comes_first(kind: str, first: Emitted, store: str | None) -> None:
    records: Records = [("left", "a", "x1", 1), ("right", "x", "r1", 2), ("left", "b", "x2", 3)]
    assert steps(kind, records, store) == [first, [("a", "x1+r1", 2)], [("b", "x2+r1", 3)]]


def test_a_change_of_the_right_row_changes_all_rows_that_refer_to_it() -> None:
    records: Records = [(("left"), key, f"x{key}", 1) for key in "bca"]
    records += [("left", "d", "y", 1), ("right", "x", "r1", 2), ("right", "x", None, 3)]
    assert steps("join", records)[-2:] == [
        [("a", "xa+r1", 2), ("b", "xb+r1", 2), ("c", "xc+r1", 2)],
        [("a", None, 3), ("b", None, 3), ("c", None, 3)],
    ]
    assert steps("left_join", records)[-1] == [("a", "xa+None", 3), ("b", "xb+None", 3), ("c", "xc+None", 3)]


def test_foreign_keys_that_start_alike_are_kept_apart() -> None:
    builder = StreamsBuilder()
    builder.table("left").join(builder.table("right"), plus, foreign_key=str.strip).to_stream().to("out")
    records: Records = [
        ("left", "a", "x", 1),
        ("left", "b", "xa", 1),
        ("right", "x", "r1", 1),
        ("right", "xa", "r2", 1),
    ]
    assert run(builder.build(), records).emitted == [("a", "x+r1", 1), ("b", "xa+r2", 1)]


def test_a_result_has_the_later_timestamp_where_the_left_row_changed_and_the_right_rows_where_that_did() -> None:
    assert steps("join", [("right", "x", "r1", 10), ("left", "a", "x1", 3)])[1] == [("a", "x1+r1", 10)]
    assert steps("join", [("left", "a", "x1", 10), ("right", "x", "r1", 3)])[1] == [("a", "x1+r1", 3)]


# --- foreign keys that change -----------------------------------------------------------------------------------------

MOVING: Records = [
    ("right", "x", "r1", 1),
    ("left", "a", "x1", 2),
    ("left", "a", "y2", 3),  # refers to nothing
    ("right", "x", "r2", 4),  # nobody refers to it
    ("left", "a", "x3", 5),
    ("left", "a", "x4", 6),
]


def test_a_row_that_refers_to_another_one_leaves_the_first() -> None:
    assert steps("join", MOVING) == [
        [],
        [("a", "x1+r1", 2)],
        [("a", None, 3)],
        [],
        [("a", "x3+r2", 5)],
        [("a", "x4+r2", 6)],
    ]
    assert steps("left_join", MOVING)[2:4] == [[("a", "y2+None", 3)], []]


def test_a_row_that_refers_to_nothing_any_more_is_deleted_from_an_inner_join() -> None:
    records: Records = [("right", "x", "r1", 1), ("left", "a", "x1", 2), ("left", "a", "-", 3), ("right", "x", "r2", 4)]
    result = run(joined("join"), records)
    assert result.steps[1:] == [[("a", "x1+r1", 2)], [("a", None, 3)], []]
    assert result.dropped == {"null-foreign-key": 1}


def test_a_row_without_foreign_key_is_kept_by_a_left_join() -> None:
    records: Records = [("left", "a", "-", 1), ("right", "x", "r1", 2), ("left", "a", "x1", 3), ("left", "a", "-2", 4)]
    result = run(joined("left_join"), records)
    assert result.steps == [[("a", "-+None", 1)], [], [("a", "x1+r1", 3)], [("a", "-2+None", 4)]]
    assert not result.dropped


def test_a_row_without_foreign_key_that_was_never_joined_emits_nothing_in_an_inner_join() -> None:
    result = run(joined("join"), [("left", "a", "-", 1), ("left", "a", "-2", 2), ("left", "a", None, 3)])
    assert (result.emitted, result.dropped) == ([], {"null-foreign-key": 2})


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_a_deleted_row_is_deleted_from_the_result(kind: str) -> None:
    records: Records = [
        ("right", "x", "r1", 1),
        ("left", "a", "x1", 2),
        ("left", "a", None, 3),
        ("right", "x", "r2", 4),
    ]
    assert steps(kind, records)[1:] == [[("a", "x1+r1", 2)], [("a", None, 3)], []]


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_deleting_a_row_that_is_not_there_sends_nothing(kind: str) -> None:
    assert run(joined(kind), [("left", "a", None, 1)]).topics == []


# --- responses --------------------------------------------------------------------------------------------------------


def test_outdated_responses_are_dropped() -> None:
    """What a response says of a value that the row no longer has is not joined with the new one."""
    topology = joined("left_join")
    (responses,) = (
        topic.name for plan in topology.sub_topologies for topic in plan.internal_sinks if "RESPONSE" in topic.name
    )
    serde = ResponseSerde(serdes.text())
    with TopologyTestDriver(topology) as driver:
        out = driver.create_output_topic("out")
        driver.create_input_topic("left").pipe_input("a", "x1", 1)
        assert out.read_value() == "x1+None"
        for value, joined_value in (("x0", None), ("x1", "x1+late")):
            response = Response(hash_of(value.encode()), "late")
            driver.pipe(f"test-{responses}", b"a", serde.serialize("", response), 2)
            assert (out.read_value() if joined_value else out.is_empty()) == (joined_value or True)


def test_several_changes_of_a_row_in_one_batch_emit_the_last_one() -> None:
    """The right side answers when both subscriptions are sent: the first answer is outdated then."""
    topology = joined("join")
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("right").pipe_input("x", "r1", 1)
        driver.create_input_topic("right").pipe_input("y", "r2", 1)
        for value in (b"x1", b"y2"):
            driver._enqueue("left", (b"a", value, 2, None, None))
        driver._drain()
        assert driver.create_output_topic("out").read_key_values_to_list() == [("a", "y2+r2")]


@pytest.mark.parametrize(
    "value",
    [
        Subscription("a", bytes(range(16)), Instruction.SUBSCRIBE),
        Subscription("", bytes(16), Instruction.DELETE),
        Subscription("a", None, Instruction.DELETE_AND_RESPOND),
    ],
)
def test_subscriptions_survive_their_topic(value: Subscription) -> None:
    serde = SubscriptionSerde(serdes.text())
    assert serde.deserialize("t", serde.serialize("t", value)) == value


@pytest.mark.parametrize("value", [Response(bytes(16), "x"), Response(bytes(16), None), Response(None, None)])
def test_responses_survive_their_topic(value: Response) -> None:
    serde = ResponseSerde(None).with_defaults(serdes.text(), serdes.text())
    assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_a_right_row_without_bytes_counts_as_none_as_in_kafka() -> None:
    records: Records = [("left", "a", "x1", 1), ("right", "x", "r1", 2), ("right", "x", "", 3)]
    assert steps("join", records)[-1] == [("a", None, 3)]
    assert steps("left_join", records)[-1] == [("a", "x1+None", 3)]


# --- how it is built --------------------------------------------------------------------------------------------------


def test_the_two_tables_are_two_sub_topologies() -> None:
    topology = joined("join")
    left, right = sorted(topology.sub_topologies, key=lambda plan: "left" not in plan.sources[0].topics)
    assert {store.name for store in left.stores} == {"rows"}
    assert {store.name.rstrip("0123456789") for store in right.stores} == {
        "right-STATE-STORE-",
        "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-",
    }


def test_keys_of_both_tables_have_their_own_serdes() -> None:
    builder = StreamsBuilder()
    left = builder.table("left", key_serde=serdes.long(), value_serde=serdes.json())
    right = builder.table("right", key_serde=serdes.integer(), value_serde=serdes.double())
    prices = left.join(right, lambda order, price: order["count"] * price, foreign_key=lambda order: order["item"])
    prices.to_stream().to("out", value_serde=serdes.double())
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("right", serdes.integer(), serdes.double()).pipe_input(7, 2.5)
        driver.create_input_topic("left", serdes.long(), serdes.json()).pipe_input(1, {"item": 7, "count": 4})
        assert driver.create_output_topic("out", serdes.long(), serdes.double()).read_key_value() == (1, 10.0)


def test_a_foreign_key_may_be_found_in_the_key() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(
        right,
        lambda key, value, other: f"{key}:{value}+{other}",
        foreign_key=lambda key, value: key[0],
        foreign_key_with_key=True,
        with_key=True,
    ).to_stream().to("out")
    records: Records = [("left", "xa", "l", 1), ("right", "x", "r", 1)]
    assert run(builder.build(), records).emitted == [("xa", "xa:l+r", 1)]


def test_a_result_can_be_grouped() -> None:
    builder = StreamsBuilder()
    rows = builder.table("left").join(builder.table("right"), plus, foreign_key=reference)
    grouped = rows.group_by(lambda key, value: (value[0], value), value_serde=serdes.text())
    grouped.count(value_serde=serdes.json()).to_stream().to("out")
    records: Records = [("right", "x", "r1", 1), ("right", "y", "r2", 1)]
    records += [("left", "a", "x1", 1), ("left", "b", "x2", 1), ("left", "a", "y1", 1)]
    assert run(builder.build(), records).emitted == [("x", "1", 1), ("x", "2", 1), ("x", "1", 1), ("y", "1", 1)]


def test_a_table_without_store_may_refer_to_another() -> None:
    builder = StreamsBuilder()
    rows = builder.table("left").filter(lambda key, value: len(value) == 2)
    rows.join(builder.table("right").map_values(str.upper), plus, foreign_key=reference).to_stream().to("out")
    records: Records = [("left", "a", "x1", 1), ("left", "b", "x", 1), ("right", "x", "r1", 1), ("left", "a", "x", 2)]
    assert run(builder.build(), records).emitted == [("a", "x1+R1", 1), ("a", None, 2)]
