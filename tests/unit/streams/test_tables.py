"""Tables and aggregates: what they emit, and when they need stores."""

from typing import Any

from kaspar.streams import Record, StreamsBuilder, Topology, TopologyTestDriver, ValueTransformer, serdes

Pairs = list[tuple[Any, Any]]


def changes(topology: Topology, records: Pairs, *, values: Any = None, source: str = "in") -> Pairs:
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic(source).pipe_key_values(records)
        return driver.create_output_topic("out", value_serde=values).read_key_values_to_list()


def store_names(topology: Topology) -> list[str]:
    return [store.name for store in topology.stores]


def test_count_emits_every_update() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count("counts").to_stream().to("out")
    emitted = changes(builder.build(), [("a", "x"), ("b", "x"), ("a", "y")], values=serdes.long())
    assert emitted == [("a", 1), ("b", 1), ("a", 2)]


def test_records_without_key_or_value_belong_to_no_group() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([(None, "x"), ("a", None)])
        assert driver.produced == []
        assert driver.dropped == {"null-key-or-value": 2}


def test_an_aggregate_has_the_latest_timestamp_of_its_records() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda total, value: total + value).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("a", "x", 10)
        lines.pipe_input("a", "y", 5)
        assert driver.create_output_topic("out").read_records_to_list() == [
            Record("a", "x", 10),
            Record("a", "xy", 10),
        ]


def test_an_aggregate_may_delete_its_key() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.aggregate(str, lambda key, value, total: None if value == "-" else total + value, "sums").to_stream().to(
        "out"
    )
    assert changes(builder.build(), [("a", "x"), ("a", "-"), ("a", "y")]) == [("a", "x"), ("a", None), ("a", "y")]


def test_grouping_by_another_key_counts_under_that_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: value).count().to_stream().to("out")
    assert changes(builder.build(), [("a", "x"), ("b", "x")], values=serdes.long()) == [("x", 1), ("x", 2)]


def test_two_aggregates_of_one_grouping_share_its_shuffle() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(lambda key, value: value)
    grouped.count("counts").to_stream().to("counts-out")
    grouped.reduce(lambda one, other: other, "last").to_stream().to("last-out")
    (plan,) = builder.build().sub_topologies
    assert {port.parent.name for port in plan.ports} == {"counts-repartition"}


def test_a_cogroup_aggregates_several_streams_into_one_table() -> None:
    builder = StreamsBuilder()
    one, two = builder.stream("in").group_by_key(), builder.stream("other").group_by_key()
    cogrouped = one.cogroup(lambda key, value, total: f"{total}+{value}")
    cogrouped.cogroup(two, lambda key, value, total: f"{total}*{value}").aggregate(lambda: "0", "both").to_stream().to(
        "out"
    )
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "1")
        driver.create_input_topic("other").pipe_input("a", "2")
        assert driver.create_output_topic("out").read_values_to_list() == ["0+1", "0+1*2"]


def test_a_table_is_kept_only_if_somebody_needs_it() -> None:
    builder = StreamsBuilder()
    builder.table("in").to_stream().to("out")
    topology = builder.build()
    assert store_names(topology) == []
    assert changes(topology, [("a", "x"), ("a", None), (None, "y")]) == [("a", "x"), ("a", None)]

    builder = StreamsBuilder()
    builder.table("in", "kept").to_stream().to("out")
    assert store_names(builder.build()) == ["kept"]


def test_a_filter_without_store_sends_a_tombstone_for_every_value_that_does_not_pass() -> None:
    builder = StreamsBuilder()
    builder.table("in").filter(lambda key, value: value > "m").to_stream().to("out")
    assert changes(builder.build(), [("a", "b"), ("a", "z"), ("a", "c")]) == [("a", None), ("a", "z"), ("a", None)]


def test_a_filter_whose_old_values_are_needed_is_silent_about_keys_that_never_passed() -> None:
    builder = StreamsBuilder()
    kept = builder.table("in").filter(lambda key, value: value > "m", "kept")
    kept.group_by(lambda key, value: (value, key)).count().to_stream().to("out")
    emitted = changes(builder.build(), [("a", "b"), ("a", "z"), ("a", "c")], values=serdes.long())
    assert emitted == [("z", 1), ("z", 0)]


def test_mapped_values_of_a_table_pass_tombstones_on() -> None:
    builder = StreamsBuilder()
    builder.table("in").map_values(str.upper).to_stream().to("out")
    assert changes(builder.build(), [("a", "b"), ("a", None)]) == [("a", "B"), ("a", None)]


def test_a_row_that_changes_its_group_leaves_the_old_one_first() -> None:
    builder = StreamsBuilder()
    builder.table("in").group_by(lambda key, value: (value, key)).count("groups").to_stream().to("out")
    emitted = changes(builder.build(), [("a", "x"), ("b", "x"), ("a", "y"), ("b", None)], values=serdes.long())
    assert emitted == [("x", 1), ("x", 2), ("x", 1), ("y", 1), ("x", 0)]


def test_a_row_that_stays_in_its_group_changes_it_once() -> None:
    builder = StreamsBuilder()
    grouped = builder.table("in").group_by(lambda key, value: ("all", value))
    grouped.reduce(lambda total, value: total + value, lambda total, value: total.replace(value, "", 1), "sums").to(
        "out"
    )
    assert changes(builder.build(), [("a", "x"), ("a", "y")]) == [("all", "x"), ("all", "y")]


def test_a_grouped_table_is_cut_by_an_internal_topic() -> None:
    builder = StreamsBuilder()
    builder.table("in").group_by(lambda key, value: (value, key)).count("groups").to_stream().to("out")
    first, second = builder.build().sub_topologies
    assert [topic.name for topic in first.internal_sinks] == ["groups-repartition"]
    assert [source.topics for source in second.sources] == [("groups-repartition",)]


def test_a_stream_becomes_a_table() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to_table("last").to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", "y"), ("b", "z"), ("b", None)])
        assert [(key, value.value) for key, value in driver.store("last").all()] == [("a", "y")]


def test_a_stream_that_becomes_a_table_without_name_is_kept_only_if_somebody_needs_it() -> None:
    builder = StreamsBuilder()
    table = builder.stream("in").to_table()
    table.to_stream().to("out")
    assert store_names(builder.build()) == []

    builder = StreamsBuilder()
    table = builder.stream("in").to_table()
    table.group_by(lambda key, value: (value, key)).count("counts").to_stream().to("out")
    assert len(store_names(builder.build())) == 2


class _WithLength(ValueTransformer):
    def transform(self, key: str, value: str | None) -> str | None:
        return None if value is None else f"{value}:{len(value)}"


def test_transformed_values_are_computed_for_every_change() -> None:
    builder = StreamsBuilder()
    builder.table("in").transform_values(_WithLength).to_stream().to("out")
    assert changes(builder.build(), [("a", "xy"), ("a", None)]) == [("a", "xy:2"), ("a", None)]
