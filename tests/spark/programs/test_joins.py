"""Every kind of join in one program, on Spark and brokers, over a restart that has lost the local state."""

import shutil
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kaspar.streams import JoinWindows, StreamsBuilder, Topology
from tests.peers.kaspar import KasparProcess
from tests.spark.programs.apps import App, last_values, running
from tests.spark.topics import Message, Topics

GUARANTEES = ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.long)]
"""Joins know nothing of them: what they change is tested with the word count."""
START = time.time_ns() // 1_000_000 - 60_000  # recent, since old records are deleted
INPUTS = {"views": 1, "clicks": 3, "names": 2, "cities": 1, "orders": 3, "products": 2, "pages": 1}
"""The input topics and how many partitions each has: joins do not ask for equal numbers."""


def plus(value: str | None, other: str | None) -> str:
    return f"{value}+{other}"


def joins(prefix: str) -> Topology:
    builder = StreamsBuilder()
    views, clicks = builder.stream(f"{prefix}-views"), builder.stream(f"{prefix}-clicks")
    names, cities = builder.table(f"{prefix}-names"), builder.table(f"{prefix}-cities")
    orders, products = builder.table(f"{prefix}-orders"), builder.table(f"{prefix}-products")
    pages = builder.global_table(f"{prefix}-pages")
    views.outer_join(clicks, plus, JoinWindows.of_time_difference(1000)).to(f"{prefix}-streams")
    clicks.left_join(names, plus).to(f"{prefix}-stream-and-table")
    names.outer_join(cities, plus, "people").to_stream().to(f"{prefix}-tables")
    orders.left_join(products, plus, foreign_key=lambda order: order.split()[-1]).to_stream().to(f"{prefix}-foreign")
    views.join(pages, plus, key_selector=lambda key, view: view).to(f"{prefix}-global")
    return builder.build()


class Feed:
    """Fills the input topics, the records of a key always in the same partition."""

    def __init__(self, topics: Topics, prefix: str) -> None:
        self._topics = topics
        self._prefix = prefix

    def __call__(self, topic: str, *records: tuple[str, str | None, int]) -> None:
        self._topics.produce(
            f"{self._prefix}-{topic}",
            [
                Message(
                    None if value is None else value.encode(),
                    key.encode(),
                    partition=ord(key[0]) % INPUTS[topic],
                    timestamp_ms=START + time,
                )
                for key, value, time in records
            ],
        )


def first_records(feed: Feed) -> None:
    feed("names", ("ada", "Ada", 0), ("bob", "Bob", 0))
    feed("cities", ("ada", "London", 0), ("eve", "Paris", 0))
    feed("products", ("pen", "2", 0))
    feed("orders", ("1", "3 pen", 0), ("2", "5 pen", 0), ("3", "7 ink", 0))
    feed("pages", ("home", "Welcome", 0))


def later_records(feed: Feed) -> None:
    feed("names", ("bob", None, 9))
    feed("cities", ("bob", "Rome", 9))
    feed("products", ("pen", None, 9), ("ink", "4", 9))
    feed("views", ("eve", "home", 5000), *((f"{number}", "shop", 5000) for number in range(30)))  # time for every task
    feed("clicks", ("eve", "c3", 5100))


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_joins_go_on_where_they_were(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path, guarantee: str
) -> None:
    prefix = f"joins-{guarantee}"
    for topic, partitions in INPUTS.items():
        topics.create(name=f"{prefix}-{topic}", partitions=partitions)
    feed, topology = Feed(topics, prefix), joins(prefix)

    def has(topic: str, **values: str) -> bool:
        found = last_values(topics, f"{prefix}-{topic}")
        wanted = {key.strip("_").encode(): value.encode() for key, value in values.items()}
        return {key: value for key, value in found.items() if key in wanted} == wanted

    def run() -> AbstractContextManager[App]:
        return running(topology, broker.bootstrap, tmp_path, f"{prefix}-app", processing_guarantee=guarantee)

    first_records(feed)
    with run() as app:
        app.wait_for(lambda: has("tables", ada="Ada+London", bob="Bob+None", eve="None+Paris"), "tables are joined")
        app.wait_for(lambda: has("foreign", _1="3 pen+2", _2="5 pen+2", _3="7 ink+None"), "orders have products")
        feed("views", ("ada", "home", 1000), ("bob", "shop", 1500))
        feed("clicks", ("ada", "c1", 1200))
        app.wait_for(lambda: has("streams", ada="home+c1"), "streams are joined")
        app.wait_for(lambda: has("stream-and-table", ada="c1+Ada"), "a stream is joined with a table")
        app.wait_for(lambda: has("global", ada="home+Welcome"), "a stream is joined with a global table")
    shutil.rmtree(tmp_path / f"{prefix}-app" / "state")
    with run() as app:
        later_records(feed)
        app.wait_for(
            lambda: has("tables", ada="Ada+London", bob="None+Rome", eve="None+Paris"), "changed rows are joined"
        )
        app.wait_for(lambda: has("foreign", _1="3 pen+None", _2="5 pen+None", _3="7 ink+4"), "orders have changed")
        app.wait_for(
            lambda: has("streams", ada="home+c1", bob="shop+None", eve="home+c3"), "what has no partner is emitted"
        )
        app.wait_for(lambda: has("stream-and-table", ada="c1+Ada", eve="c3+None"), "the table is still there")
        app.wait_for(lambda: has("global", ada="home+Welcome", eve="home+Welcome"), "the global table is there")


def test_a_table_that_is_older_than_the_stream_is_read_before_it(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    """Also while a program catches up with more records than a batch may have."""
    profiles, orders = topics.create(name="older-profiles", partitions=2), topics.create(name="newer-orders")
    keys = [f"{number}".encode() for number in range(200)]
    topics.produce(
        profiles,
        [
            Message(b"profile", key, partition=number % 2, timestamp_ms=START + number)
            for number, key in enumerate(keys)
        ],
    )
    topics.produce(
        orders,
        [Message(b"order", key, timestamp_ms=START + 1000 + number) for number, key in enumerate(reversed(keys))],
    )
    builder = StreamsBuilder()
    builder.stream(orders).left_join(builder.table(profiles), plus).to("orders-with-profiles")
    with running(
        builder.build(), broker.bootstrap, tmp_path, "older-table", max_offsets_per_trigger=60, commit_interval_ms=0
    ) as app:
        app.wait_for(lambda: last_values(topics, "orders-with-profiles").keys() == {*keys}, "all orders are processed")
    assert {*last_values(topics, "orders-with-profiles").values()} == {b"order+profile"}
