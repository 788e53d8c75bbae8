"""Joins of two streams: partners, windows, grace, and records that have no partner."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kaspar.streams import JoinWindows, KStream, StreamsBuilder, Topology, TopologyTestDriver, serdes
from tests.unit.streams.joins.runs import Emitted, plus, run

WITHIN_5 = JoinWindows.of_time_difference(5)
Records = list[tuple[str, Any, Any, int]]


def joined(kind: str, windows: JoinWindows = WITHIN_5, **options: Any) -> Topology:
    builder = StreamsBuilder()
    join: Callable[..., KStream] = getattr(builder.stream("left"), kind)
    join(builder.stream("right"), plus, windows, **options).to("out")
    return builder.build()


def steps(kind: str, records: Records, windows: JoinWindows = WITHIN_5) -> list[Emitted]:
    return run(joined(kind, windows), records).steps


# --- partners ---------------------------------------------------------------------------------------------------------


def test_partners_meet_whichever_comes_first_and_have_the_later_timestamp() -> None:
    records: Records = [("left", "a", "l1", 10), ("right", "a", "r1", 12), ("left", "a", "l2", 11)]
    assert steps("join", records) == [[], [("a", "l1+r1", 12)], [("a", "l2+r1", 12)]]


def test_records_of_other_keys_are_no_partners() -> None:
    assert steps("join", [("left", "a", "l1", 10), ("right", "b", "r1", 10), ("right", "aa", "r2", 10)])[1:] == [[], []]


def test_both_ends_of_the_window_are_inclusive() -> None:
    records: Records = [("left", "a", "l1", 10)] + [("right", "a", f"r{time}", time) for time in (4, 5, 15, 16)]
    assert steps("join", records)[1:] == [[], [("a", "l1+r5", 10)], [("a", "l1+r15", 15)], []]


def test_partners_come_in_the_order_of_their_timestamps_then_of_their_arrival() -> None:
    records: Records = [("right", "a", "r3", 12), ("right", "a", "r1", 10), ("right", "a", "r2", 10)]
    assert steps("join", [*records, ("left", "a", "l1", 11)])[-1] == [
        ("a", "l1+r1", 11),
        ("a", "l1+r2", 11),
        ("a", "l1+r3", 12),
    ]


def test_equal_records_are_all_kept() -> None:
    records: Records = [("left", "a", "l1", 10), ("left", "a", "l1", 10), ("right", "a", "r1", 10)]
    assert steps("join", records)[-1] == [("a", "l1+r1", 10), ("a", "l1+r1", 10)]


def test_before_and_after_are_seen_from_the_left() -> None:
    windows = JoinWindows.of_time_difference(0).after(5).grace(20)
    records: Records = [("left", "a", "l1", 10)] + [("right", "a", f"r{time}", time) for time in (9, 10, 15, 16)]
    assert steps("join", records, windows)[1:] == [[], [("a", "l1+r10", 10)], [("a", "l1+r15", 15)], []]
    records = [("right", "a", "r1", 10)] + [("left", "a", f"l{time}", time) for time in (4, 5, 10, 11)]
    assert steps("join", records, windows)[1:] == [[], [("a", "l5+r1", 10)], [("a", "l10+r1", 10)], []]


def test_a_window_may_lie_wholly_behind_the_record() -> None:
    windows = JoinWindows.of_time_difference(10).before(-5)
    records: Records = [("left", "a", "l1", 10)] + [("right", "a", f"r{time}", time) for time in (14, 15, 20, 21)]
    assert steps("join", records, windows)[1:] == [[], [("a", "l1+r15", 15)], [("a", "l1+r20", 20)], []]


def test_windows_may_be_given_as_timedeltas() -> None:
    windows = JoinWindows.of_time_difference(timedelta(milliseconds=1))
    assert steps("join", [("left", "a", "l1", 10), ("right", "a", "r1", 11)], windows)[1] == [("a", "l1+r1", 11)]


def test_a_joiner_may_take_the_key() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left"), builder.stream("right")
    left.join(right, lambda key, value, other: f"{key}:{value}+{other}", WITHIN_5, with_key=True).to("out")
    records: Records = [("left", "a", "l1", 1), ("right", "a", "r1", 1), ("left", "a", "l2", 1)]
    assert run(builder.build(), records).emitted == [("a", "a:l1+r1", 1), ("a", "a:l2+r1", 1)]


def test_a_stream_may_be_joined_with_itself() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    stream.join(stream, plus, WITHIN_5).to("out")
    records: Records = [("left", "a", "1", 10), ("left", "a", "2", 11), ("left", "a", "3", 20)]
    assert run(builder.build(), records).steps == [
        [("a", "1+1", 10)],
        [("a", "2+1", 11), ("a", "1+2", 11), ("a", "2+2", 11)],
        [("a", "3+3", 20)],
    ]


def test_a_record_that_is_both_sides_arrives_in_the_order_in_which_the_sides_were_made() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    stream.join(stream.filter(lambda key, value: True), plus, WITHIN_5).to("out")  # the filter is the first child
    assert run(builder.build(), [("left", "a", "1", 1), ("left", "a", "2", 1)]).steps[1] == [
        ("a", "1+2", 1),
        ("a", "2+1", 1),
        ("a", "2+2", 1),
    ]


def test_joined_records_have_the_headers_of_the_record_that_came_last() -> None:
    with TopologyTestDriver(joined("join")) as driver:
        driver.create_input_topic("left").pipe_input("a", "l1", 1, [("of", b"left")])
        driver.create_input_topic("right").pipe_input("a", "r1", 1, [("of", b"right")])
        assert list(driver.create_output_topic("out").read_record().headers) == [("of", b"right")]


# --- retention and late records ---------------------------------------------------------------------------------------


def test_a_late_record_finds_partners_within_grace_and_not_after_it() -> None:
    windows = JoinWindows.of_time_difference(5).grace(10)  # records are kept for 20 ms
    records: Records = [("right", "a", "r1", 20), ("right", "a", "r2", 39), ("left", "a", "l1", 18)]
    assert steps("join", records, windows)[-1] == [("a", "l1+r1", 20)]
    records = [("right", "a", "r1", 20), ("right", "a", "r2", 40), ("left", "a", "l1", 18)]
    assert steps("join", records, windows)[-1] == []


def test_the_time_of_the_other_side_does_not_expire_records() -> None:
    records: Records = [("right", "a", "r1", 20), ("left", "a", "l1", 1000), ("left", "a", "l2", 18)]
    assert steps("join", records)[-1] == [("a", "l2+r1", 20)]


def test_records_older_than_the_store_are_dropped_counted_and_routed() -> None:
    records: Records = [("right", "a", "r1", 600_000), ("right", "a", "r2", 1), ("left", "a", "l1", 3)]
    result = run(joined("join"), records, config={"kaspar.late.topic.name": "late"})
    assert (result.emitted, result.dropped, result.topics) == ([], {"late": 1}, ["late"])


def test_a_late_record_still_finds_partners() -> None:
    records: Records = [("left", "a", "l1", 1), ("right", "b", "r1", 600_000), ("right", "a", "r2", 1)]
    result = run(joined("join"), records)
    assert (result.emitted, result.dropped) == ([("a", "l1+r2", 1)], {"late": 1})


# --- records without partner ------------------------------------------------------------------------------------------


def test_a_left_record_without_partner_is_emitted_when_its_window_closes() -> None:
    records: Records = [("left", "a", "l1", 10), ("left", "b", "l2", 15), ("left", "b", "l3", 16)]
    assert steps("left_join", records) == [[], [], [("a", "l1+None", 10)]]


def test_grace_delays_what_has_no_partner() -> None:
    windows = WITHIN_5.grace(3)
    records: Records = [("left", "a", "l1", 10), ("right", "b", "r1", 18), ("right", "b", "r2", 19)]
    assert steps("left_join", records, windows) == [[], [], [("a", "l1+None", 10)]]


def test_the_other_side_closes_windows_too() -> None:
    assert steps("left_join", [("left", "a", "l1", 10), ("right", "b", "r1", 16)])[1] == [("a", "l1+None", 10)]


def test_a_record_with_a_partner_is_not_emitted_alone() -> None:
    records: Records = [("left", "a", "l1", 10), ("right", "a", "r1", 12), ("left", "b", "l2", 100)]
    assert steps("left_join", records) == [[], [("a", "l1+r1", 12)], []]


def test_a_left_join_ignores_right_records_without_partner() -> None:
    assert run(joined("left_join"), [("right", "a", "r1", 10), ("left", "b", "l1", 100)]).emitted == []


def test_an_outer_join_emits_what_has_no_partner_by_time_then_right_before_left_then_by_key() -> None:
    records: Records = [
        ("left", "b", "l1", 10),
        ("left", "a", "l2", 10),
        ("right", "z", "r1", 10),
        ("right", "c", "r2", 9),
        ("left", "x", "l3", 100),
    ]
    assert steps("outer_join", records)[-1] == [
        ("c", "None+r2", 9),
        ("z", "None+r1", 10),
        ("a", "l2+None", 10),
        ("b", "l1+None", 10),
    ]


def test_records_of_one_key_and_time_are_emitted_in_the_order_of_their_arrival() -> None:
    records: Records = [("left", "a", "l2", 10), ("left", "a", "l1", 10), ("left", "b", "l3", 100)]
    assert steps("left_join", records)[-1] == [("a", "l2+None", 10), ("a", "l1+None", 10)]


def test_what_has_closed_is_emitted_before_what_the_new_record_joins() -> None:
    records: Records = [("left", "a", "l1", 10), ("right", "b", "r1", 14), ("left", "b", "l2", 16)]
    assert steps("left_join", records)[-1] == [("a", "l1+None", 10), ("b", "l2+r1", 16)]


def test_windows_of_the_two_sides_close_at_their_own_times() -> None:
    windows = JoinWindows.of_time_difference(5).before(0)  # a right record waits for nothing later than itself
    records: Records = [("left", "a", "l1", 10), ("right", "b", "r1", 10), ("right", "c", "r2", 11)]
    assert steps("outer_join", [*records, ("left", "d", "l2", 17)], windows) == [
        [],
        [],
        [("b", "None+r1", 10)],
        [("a", "l1+None", 10), ("c", "None+r2", 11)],
    ]


def test_a_record_whose_window_is_behind_the_stream_time_is_emitted_at_once() -> None:
    records: Records = [("left", "a", "l1", 100), ("left", "a", "l2", 94), ("left", "a", "l3", 95)]
    assert steps("left_join", records) == [[], [("a", "l2+None", 94)], []]


def test_only_a_record_that_is_not_late_looks_for_closed_windows() -> None:
    windows = WITHIN_5.grace(100)
    records: Records = [
        ("left", "a", "l1", 10),
        ("left", None, "l2", 200),
        ("left", "b", "l3", 199),
        ("left", "b", "l4", 200),
    ]
    assert steps("left_join", records, windows)[1:] == [[(None, "l2+None", 200)], [], [("a", "l1+None", 10)]]


def test_the_next_look_comes_when_the_record_at_which_the_last_one_ended_may_have_closed() -> None:
    """Kafka remembers the timestamp of the last record it has looked at (TimeTracker.minTime), not of the first open
    one: at 20 it does not look, since l3, where it ended, is still open; l2 has closed and waits for the next look."""
    records: Records = [("left", "a", "l1", 10), ("left", "b", "l2", 14), ("left", "c", "l3", 15)]
    records += [("left", "d", f"l{time}", time) for time in (16, 20, 21, 22, 26)]
    assert steps("left_join", records)[3:] == [
        [("a", "l1+None", 10)],
        [],
        [("b", "l2+None", 14), ("c", "l3+None", 15)],
        [],
        [("d", "l16+None", 16), ("d", "l20+None", 20)],
    ]


# --- null keys and values ---------------------------------------------------------------------------------------------

NULLS: Records = [
    ("left", None, "l1", 10),
    ("right", None, "r1", 10),
    ("left", "a", None, 10),
    ("right", "a", None, 10),
]


@pytest.mark.parametrize(
    ("kind", "emitted", "dropped"),
    [
        ("join", [], 4),
        ("left_join", [(None, "l1+None", 10)], 3),
        ("outer_join", [(None, "l1+None", 10), (None, "None+r1", 10)], 2),
    ],
)
def test_a_record_without_key_has_no_partner_and_one_without_value_is_dropped(
    kind: str, emitted: Emitted, dropped: int
) -> None:
    result = run(joined(kind), NULLS)
    assert (result.emitted, result.dropped) == (emitted, {"null-key-or-value": dropped})


# --- re-partitioning, serdes and names --------------------------------------------------------------------------------


def test_a_stream_with_new_keys_is_brought_to_the_tasks_of_these() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").select_key(lambda key, value: value[0])
    left.join(builder.stream("right"), plus, WITHIN_5).to("out")
    topology = builder.build()
    assert {port.parent.name for port in topology.sub_topologies[0].ports} == {
        "KSTREAM-KEY-SELECT-0000000001-repartition",
        "KSTREAM-SOURCE-0000000002",
    }
    assert run(topology, [("left", "a", "x1", 1), ("right", "x", "r1", 1)]).emitted == [("x", "x1+r1", 1)]


def test_several_joins_of_one_stream_share_its_repartitioning() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").select_key(lambda key, value: value[0])
    right = builder.stream("right")
    left.join(right, plus, WITHIN_5).to("out")
    left.left_join(right, plus, WITHIN_5).to("out")
    topology = builder.build()
    assert len({port.parent.name for port in topology.sub_topologies[0].ports}) == 2
    assert len(run(topology, [("left", "a", "x1", 1), ("right", "x", "r1", 1)]).emitted) == 2


def test_new_keys_behind_state_go_through_a_topic() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("left").group_by_key().count("counts", value_serde=serdes.json()).to_stream()
    rekeyed = counts.map(lambda key, count: (str(count), key))
    rekeyed.join(builder.stream("right"), plus, WITHIN_5, name="join").to("out")
    topology = builder.build()
    assert len(topology.sub_topologies) == 2
    result = run(topology, [("left", "a", "x", 1), ("left", "a", "x", 1), ("right", "2", "r", 1)])
    assert result.emitted == [("2", "a+r", 1)]
    assert "test-join-left-repartition" in result.topics


def test_stores_use_the_serdes_of_the_streams_unless_others_are_given() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left", value_serde=serdes.text()).map_values(lambda value: {"value": value})
    right = builder.stream("right").map_values(lambda value: [value])
    options = {"value_serde": serdes.json(), "other_value_serde": serdes.json()}
    left.outer_join(right, lambda one, other: f"{one} {other}", WITHIN_5, **options).to("out")
    records: Records = [
        ("left", "a", "l1", 1),
        ("right", "a", "r1", 1),
        ("right", "b", "r2", 1),
        ("left", "a", "l2", 9),
    ]
    assert run(builder.build(), records).emitted == [
        ("a", "{'value': 'l1'} ['r1']", 1),
        ("b", "None ['r2']", 1),
    ]


def test_stores_and_steps_have_kafkas_names() -> None:
    assert [store.name for store in joined("join").stores] == [
        "KSTREAM-JOINTHIS-0000000004-store",
        "KSTREAM-JOINOTHER-0000000005-store",
    ]
    assert [store.name for store in joined("left_join").stores] == [
        "KSTREAM-JOINTHIS-0000000004-store",
        "KSTREAM-OUTEROTHER-0000000005-store",
        "KSTREAM-OUTERSHARED-0000000004-store",
    ]
    assert [store.name for store in joined("outer_join", store_name="mine").stores] == [
        "mine-outer-this-join-store",
        "mine-outer-other-join-store",
        "mine-outer-shared-join-store",
    ]
    assert {node.name for node in joined("join", name="mine").sub_topologies[0].nodes} >= {
        "mine-this-windowed",
        "mine-other-windowed",
        "mine-this-join",
        "mine-other-join",
        "mine-merge",
    }
