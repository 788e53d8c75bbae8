"""The demo's Spark query: page views counted by page in windows of five seconds, and written exactly once.

The counts are read back from their topic by a read_committed consumer, so what is shown is what others would see.
"""

import contextlib
import json
import os
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

import kaspar.spark
from kaspar.base.errors import KasparError
from kaspar.cli.demo_events import create_topic
from kaspar.cli.demo_threads import PARTITIONS, TOPIC, Figures, Worker, listen_to_signals
from kaspar.cli.demo_view import Screen
from kaspar.spark.watching.figures import QueryFigures, message_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COUNTS_TOPIC = "page-counts"
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.sql.session.timeZone": "UTC",
    # In a run of a minute or two the JVM's optimizing compiler costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
BAR = 40


def show_query(bootstrap: str, figures: Figures, stop: threading.Event, screen: Screen) -> None:
    figures.consumed_how = "counted by Spark"
    create_topic(bootstrap, COUNTS_TOPIC)
    started = time.perf_counter()
    print("Starting Spark, which takes some seconds.", flush=True)
    with tempfile.TemporaryDirectory(prefix="kaspar-demo-") as folder:
        log = Path(folder, "spark.log")
        with _stderr_into(log):
            session = kaspar.spark.session("kaspar demo", "local[2]", SETTINGS)
        listen_to_signals(stop)  # again: PySpark has replaced the handlers
        try:
            query = _start_query(session, bootstrap, Path(folder, "checkpoint"))
            with kaspar.spark.watch(session, out=None) as watching:
                while query.lastProgress is None and query.isActive and not stop.wait(0.1):
                    pass
                print(f"The query is running after {time.perf_counter() - started:.0f} s. Every five seconds it counts")
                print(f"the views of each page and writes the counts exactly once to {COUNTS_TOPIC}.\n", flush=True)
                _show(bootstrap, figures, stop, screen, query, watching.listener.queries)
        finally:
            kaspar.spark.end(session)


def _start_query(session: "SparkSession", bootstrap: str, checkpoint: Path) -> "StreamingQuery":
    from pyspark.sql import functions as f

    views = (
        session.readStream.format("kaspar")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
    )
    page = f.get_json_object(f.col("value").cast("string"), "$.page").alias("page")
    counts = (
        views.select("timestamp", page)
        .withWatermark("timestamp", "1 second")
        .groupBy(f.window("timestamp", "5 seconds"), "page")
        .count()
    )
    return (
        counts.select(
            f.col("page").alias("key"),
            f.to_json(f.struct(f.col("window.start").alias("from"), "page", "count")).alias("value"),
        )
        .writeStream.format("kaspar")
        .queryName("page-counts")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", COUNTS_TOPIC)
        .option("guarantee", "exactly-once")
        .option("checkpointLocation", str(checkpoint))
        .outputMode("append")
        .trigger(processingTime="500 milliseconds")
        .start()
    )


class Counts:
    """The counts that have arrived, by window and page."""

    def __init__(self) -> None:
        self.windows: dict[str, dict[str, int]] = defaultdict(dict)

    def apply(self, value: bytes) -> int:
        """Apply one record; returns the number of views in it."""
        record = json.loads(value)
        window = self.windows[record["from"]]
        if record["page"] in window:
            raise KasparError(f"{record['page']} was counted twice in the window from {record['from']}")
        window[record["page"]] = record["count"]
        return int(record["count"])

    def newest(self) -> tuple[str, dict[str, int]]:
        start = max(self.windows, default="")
        return start[11:19], dict(self.windows.get(start, {}))


def _show(
    bootstrap: str,
    figures: Figures,
    stop: threading.Event,
    screen: Screen,
    query: "StreamingQuery",
    queries: Mapping[str, QueryFigures],
) -> None:
    counts = Counts()
    with Worker(stop, _read_counts, bootstrap, figures, stop, counts):
        produced = figures.produced
        for _ in screen.ticks():
            if not query.isActive:
                break
            rate, produced = figures.produced - produced, figures.produced
            report = next((each.last for each in list(queries.values())), None)
            start, pages = counts.newest()
            most = max(pages.values(), default=1)
            bars = [
                f"  {page:<18}{count:>8,}  {'█' * (BAR * count // most)}"
                for page, count in sorted(pages.items(), key=lambda each: -each[1])
            ]
            newest = f"window from {start or '-'}: {sum(pages.values()):,} views of {len(pages)} pages"
            spark = f"Spark: {report.line() if report is not None else 'no batch yet'}"
            screen.draw(
                f"produced {rate:>7,}/s",
                [spark, f"  {newest}, {len(counts.windows)} windows so far", *bars],
                f"{spark}   {newest}",
            )
    if not query.isActive:
        raise KasparError(f"the query stopped: {message_in(str(query.exception()))}")


def _read_counts(bootstrap: str, figures: Figures, stop: threading.Event, counts: Counts) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(COUNTS_TOPIC, partition, 0) for partition in range(PARTITIONS)])
    while not stop.is_set():
        for message in consumer.consume(100, timeout=0.1):
            problem = message.error()
            if problem is not None:
                raise KafkaException(problem)
            value = message.value()
            assert isinstance(value, bytes)
            figures.consumed += counts.apply(value)
    consumer.close()


@contextlib.contextmanager
def _stderr_into(file: Path) -> Iterator[None]:
    """Also redirects the standard error of processes started meanwhile, for good: the JVM warns about itself."""
    saved = os.dup(2)
    with file.open("wb") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
