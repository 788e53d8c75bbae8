"""Topologies of many kinds on Spark: what the runtime does beyond the core, which has tests of its own."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kaspar.streams import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    TimeWindows,
    serdes,
    stores,
)
from tests.peers.kaspar import KasparProcess
from tests.spark.programs.apps import App, counts, last_values, running
from tests.spark.topics import Message, Topics, wait_until

NOW = int(time.time()) // 10 * 10_000
"""In milliseconds, at the start of a window. Brokers soon delete records that are much older."""
EXACTLY_ONCE = {"processing_guarantee": "exactly_once_v2"}

pytestmark = pytest.mark.usefixtures("spark")


def test_records_without_state_keep_headers_and_timestamps(
    broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    events = topics.create(partitions=2)
    builder = StreamsBuilder()
    builder.stream(events).filter(lambda key, value: value != "no").map_values(str.upper).to(f"{events}-out")
    topics.produce(
        events,
        [
            Message(b"yes", b"k", headers=(("h", b"1"), ("empty", None)), timestamp_ms=NOW + 5000),
            Message(b"no", b"k"),
            Message(b"plain", None, partition=1, timestamp_ms=NOW + 6000),
        ],
    )
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{events}", **EXACTLY_ONCE) as app:
        app.wait_for(lambda: len(topics.read(f"{events}-out")) == 2, "both records are written")
    written = {record.value: record for record in topics.read(f"{events}-out")}
    assert written[b"YES"].headers == (("h", b"1"), ("empty", None))
    assert written[b"YES"].timestamp[1] == NOW + 5000
    assert written[b"PLAIN"].timestamp[1] == NOW + 6000
    assert topics.partition_count(f"{events}-out") == 2


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.long)])
def test_a_second_grouping_reads_a_repartition_topic(
    broker: KasparProcess, topics: Topics, tmp_path: Path, guarantee: str
) -> None:
    """How many users have made so many clicks: a table, grouped by its values."""
    clicks = topics.create(partitions=3)
    builder = StreamsBuilder()
    by_user = builder.stream(clicks).group_by_key().count("by-user")
    by_user.group_by(lambda user, count: (str(count), user)).count("by-count").to_stream().to(f"{clicks}-out")
    topics.produce(clicks, [Message(b"-", user) for user in (b"a", b"b", b"a", b"c", b"a", b"b")])
    name = f"app-{clicks}"
    with running(builder.build(), broker.bootstrap, tmp_path, name, processing_guarantee=guarantee) as app:
        wanted = {"1": 1, "2": 1, "3": 1}
        app.wait_for(lambda: counts(topics, f"{clicks}-out") == wanted, "users are counted")
        assert len(app.pipeline.queries) == 2
        topics.produce(clicks, [Message(b"-", b"c"), Message(b"-", b"c"), Message(b"-", b"d")])
        wanted = {"1": 1, "2": 1, "3": 2}
        app.wait_for(lambda: counts(topics, f"{clicks}-out") == wanted, "users are counted")
    assert topics.partition_count(f"{name}-by-count-repartition") == 3


def test_a_stream_is_joined_with_a_table(broker: KasparProcess, topics: Topics, tmp_path: Path) -> None:
    users, clicks = topics.create(partitions=2), topics.create(partitions=4)
    builder = StreamsBuilder()
    table = builder.table(users, "users")
    builder.stream(clicks).join(table, lambda click, user: f"{user} {click}").to(f"{clicks}-out")
    topics.produce(users, [Message(b"Ann", b"a", timestamp_ms=NOW + 10), Message(b"Bob", b"b", timestamp_ms=NOW + 20)])
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{clicks}", **EXACTLY_ONCE) as app:
        app.wait_for(lambda: app.store("users").get("b") is not None, "the table is read")
        clicked = [(b"home", b"a", 0), (b"cart", b"b", 1), (b"home", b"c", 2), (b"pay", b"a", 3)]
        topics.produce(
            clicks,
            [Message(value, key, partition=where, timestamp_ms=NOW + 30 + where) for value, key, where in clicked],
        )
        app.wait_for(lambda: len(topics.read(f"{clicks}-out")) == 3, "clicks are joined")
    assert sorted(record.value or b"" for record in topics.read(f"{clicks}-out")) == [
        b"Ann home",
        b"Ann pay",
        b"Bob cart",
    ]


def test_stores_are_read_over_http(broker: KasparProcess, topics: Topics, tmp_path: Path) -> None:
    events = topics.create(partitions=2)
    builder = StreamsBuilder()
    grouped = builder.stream(events).group_by_key()
    grouped.count("totals")
    grouped.windowed_by(TimeWindows.of_size(1000).grace(60_000)).count("per-second")
    topics.produce(events, [Message(b"x", b"k", timestamp_ms=NOW + after) for after in (100, 200, 1500)])
    topics.produce(events, [Message(b"x", b"l", timestamp_ms=NOW + 300)])
    settings = {"kaspar_state_listener": "127.0.0.1:0", **EXACTLY_ONCE}
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{events}", **settings) as app:
        app.wait_for(lambda: _get(app, "/stores/totals/keys/k") is not None, "the events are counted")
        assert _get(app, "/stores/totals/keys/k") == {"key": "k", "value": 3, "timestamp": NOW + 1500}
        assert _get(app, "/stores/totals/keys/unknown") is None
        assert _get(app, "/stores/totals/range?from=k&to=z&limit=1") == [
            {"key": "k", "value": 3, "timestamp": NOW + 1500}
        ]
        assert [each["key"] for each in _get(app, "/stores/totals/range")] == ["k", "l"]
        assert _get(app, "/stores/per-second/windows/k") == [
            {"key": "k", "start": NOW, "end": NOW + 1000, "value": 2, "timestamp": NOW + 200},
            {"key": "k", "start": NOW + 1000, "end": NOW + 2000, "value": 1, "timestamp": NOW + 1500},
        ]
        assert _get(app, f"/stores/per-second/windows/k?from={NOW + 1000}")[0]["start"] == NOW + 1000
        assert {each["name"] for each in _get(app, "/stores")} == {"totals", "per-second"}
        assert _get(app, "/stores/totals")["entries"] == 2


def test_records_that_cannot_be_read_or_processed_are_dead_letters(
    broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    events = topics.create()
    builder = StreamsBuilder()
    numbers = builder.stream(events, value_serde=serdes.json())
    numbers.map_values(lambda value: 10 // value).group_by_key().reduce(
        lambda one, other: one + other, "sums", value_serde=serdes.json()
    ).to_stream().to(f"{events}-out", value_serde=serdes.json())
    topics.produce(events, [Message(value, b"k") for value in (b"5", b"{", b"0", b"2")])
    settings = {
        "deserialization_exception_handler": "continue",
        "processing_exception_handler": "continue",
        "errors_dead_letter_queue_topic_name": f"{events}-dead",
        "kaspar_metrics_listener": "127.0.0.1:0",
        **EXACTLY_ONCE,
    }
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{events}", **settings) as app:
        app.wait_for(lambda: last_values(topics, f"{events}-out") == {b"k": b"7"}, "the others are processed")
        app.wait_for(lambda: app.pipeline.sub_topologies[0].figures.records > 0, "the batch is counted")
        assert sum(app.pipeline.sub_topologies[0].figures.dropped.values()) == 2
        with urllib.request.urlopen(f"http://127.0.0.1:{app.metrics_port}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        assert f'kaspar_pipeline_dropped_records_total{{pipeline="app-{events}",reason="processing"}} 1' in lines
    dead = {record.value: dict(record.headers) for record in topics.read(f"{events}-dead")}
    assert dead.keys() == {b"{", b"0"}
    assert dead[b"0"]["__streams.errors.exception"] == b"ZeroDivisionError"
    assert dead[b"{"]["__streams.errors.offset"] == b"1"


def test_a_global_table_is_known_to_all_tasks(broker: KasparProcess, topics: Topics, tmp_path: Path) -> None:
    items, orders = topics.create(partitions=2), topics.create(partitions=2)
    builder = StreamsBuilder()
    table = builder.global_table(items, "items")
    builder.stream(orders).join(table, lambda order, item: f"{order}={item}", key_selector=lambda key, value: value).to(
        f"{orders}-out"
    )
    topics.produce(items, [Message(b"Tea", b"t", partition=0), Message(b"Rum", b"r", partition=1)])
    topics.produce(orders, [Message(b"t", b"1", partition=0), Message(b"r", b"2", partition=1), Message(b"x", b"3")])
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{orders}", **EXACTLY_ONCE) as app:
        wanted = {b"1": b"t=Tea", b"2": b"r=Rum"}
        app.wait_for(lambda: last_values(topics, f"{orders}-out") == wanted, "orders are joined")
        topics.produce(items, [Message(b"Milk", b"x", partition=1)])
        topics.produce(orders, [Message(b"x", b"4")])
        wanted[b"4"] = b"x=Milk"
        app.wait_for(lambda: last_values(topics, f"{orders}-out") == wanted, "the table grows")


class Clock(Processor):
    """Forwards how many records there were, whenever a second has passed."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen: Any = context.store("seen")
        context.schedule(500, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: Record) -> None:
        self.seen.put("count", (self.seen.get("count") or 0) + 1)

    def tick(self, now: int) -> None:
        self.context.forward(Record("ticks", str(self.seen.get("count")), now))


def test_an_idle_program_ticks(broker: KasparProcess, topics: Topics, tmp_path: Path) -> None:
    events = topics.create()
    builder = StreamsBuilder().add_state_store(stores.key_value("seen", serdes.text(), serdes.long()))
    builder.stream(events).process(Clock, ["seen"]).to(f"{events}-out")
    topics.produce(events, [b"one", b"two"])
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{events}", **EXACTLY_ONCE) as app:
        app.wait_for(lambda: topics.values(f"{events}-out")[-2:] == [b"2"] * 2, "it ticks though nothing arrives")


def test_topics_are_found_by_a_pattern_when_they_are_created(
    broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    base = topics.create()
    topics.create(name=f"{base}.one")
    builder = StreamsBuilder()
    builder.stream(pattern=rf"{base}\..*").group_by(lambda key, value: value).count("counts").to_stream().to(
        f"{base}-out"
    )
    topics.produce(f"{base}.one", [b"x"])
    settings = {"consumer_metadata_max_age_ms": "500", **EXACTLY_ONCE}
    with running(builder.build(), broker.bootstrap, tmp_path, f"app-{base}", **settings) as app:
        app.wait_for(lambda: counts(topics, f"{base}-out") == {"x": 1}, "the first topic is read")
        topics.create(name=f"{base}.two")
        topics.produce(f"{base}.two", [b"x"])
        app.wait_for(lambda: counts(topics, f"{base}-out") == {"x": 2}, "the second topic is read")


def test_a_function_that_fails_is_reported_and_the_program_tries_again(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    events = topics.create()
    builder = StreamsBuilder()
    builder.stream(events).map_values(int).to(f"{events}-out", value_serde=serdes.long())
    topics.produce(events, [b"seven"])
    app = App(
        builder.build(),
        {"application.id": f"app-{events}", "bootstrap.servers": broker.bootstrap, "state.dir": tmp_path},
    )
    app.start()
    try:
        wait_until(lambda: app.problem is not None, "the failure is reported", seconds=100)
        assert app.problem is not None
        assert "raised ValueError: invalid literal" in app.problem
        assert f"topic {events}, partition 0, offset 0" in app.problem
    finally:
        app.close()


def _get(app: App, path: str) -> Any:
    """None if there is no such thing."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{app.state_port}{path}", timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
