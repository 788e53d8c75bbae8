"""Clicks, filtered and counted into another topic, exactly once.

A streaming query reads the topic `clicks`, filters out robots, and counts the clicks on each page in windows of two
seconds. When a window closes its counts go to the topic `click-counts`, in one transaction per micro-batch. Halfway the
query is stopped and restarted. At the end the published counts are compared with the clicks themselves: each count must
be there once, and be right.
"""

import random
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

from examples.spark.shop import CLICK, Clicks, Event, Traffic, create_topic, now
from examples.spark.stage import Stage, parser, say, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

WINDOW = "2 seconds"
COUNT = "page STRING, from TIMESTAMP, clicks BIGINT"
LAST_PAGE = "/goodbye"  # a click from the future closes all windows but its own


def run(stage: Stage, *, clicks: str, counts: str, guarantee: str = "exactly-once") -> bool:
    """Whether every count was published once and is right."""
    create_topic(stage.bootstrap, clicks)
    create_topic(stage.bootstrap, counts)
    events = Clicks(random.Random(stage.seed))
    traffic = Traffic(stage.bootstrap, clicks, events, stage.rate)
    traffic.send_some()
    query = _start(stage, clicks, counts, guarantee)
    try:
        stage.warm_up(query)
        with traffic:
            stage.watch(query, lambda running: f"{traffic.sent:,} clicks sent; {_batch(running)}", stage.seconds / 2)
            query.stop()
            say("         the query is stopped, and started again")
            query = _start(stage, clicks, counts, guarantee)
            stage.warm_up(query)
            stage.watch(query, lambda running: f"{traffic.sent:,} clicks sent; {_batch(running)}", stage.seconds / 2)
        traffic.send(_last_click(next(iter(events))))
        traffic.flush()
        query.processAllAvailable()
    finally:
        query.stop()
    return _right(stage, clicks, counts)


def _last_click(event: Event) -> Event:
    key, _, value = event
    future = now() + timedelta(hours=1)
    return key, future, {**value, "at": future.isoformat(), "page": LAST_PAGE, "agent": "browser"}


def _start(stage: Stage, clicks: str, counts: str, guarantee: str) -> "StreamingQuery":
    from pyspark.sql import functions as f

    counted = _counted(stage.reader(clicks, CLICK, streaming=True).select("value.*").withWatermark("at", "1 second"))
    return (
        counted.select(f.col("page").alias("key"), f.to_json(f.struct("*")).alias("value"))
        .writeStream.format("kaspar")
        .option("kafka.bootstrap.servers", stage.bootstrap)
        .option("topic", counts)
        .option("guarantee", guarantee)
        .option("checkpointLocation", str(stage.folder / "checkpoint"))
        .outputMode("append")
        .trigger(processingTime="500 milliseconds")
        .start()
    )


def _counted(clicks: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    return (
        clicks.where("agent <> 'robot'")
        .groupBy("page", f.window("at", WINDOW))
        .agg(f.count("*").alias("clicks"))
        .select("page", f.col("window.start").alias("from"), "clicks")
    )


def _batch(query: "StreamingQuery") -> str:
    progress = query.lastProgress
    if progress is None:
        return "no batch yet"
    return f"batch {progress['batchId']} took {progress['batchDuration']} ms for {progress['numInputRows']} clicks"


def _right(stage: Stage, clicks: str, counts: str) -> bool:
    published = stage.reader(counts, COUNT).select("value.*").cache()
    true = _counted(stage.reader(clicks, CLICK).select("value.*")).where(f"page <> '{LAST_PAGE}'").cache()
    wrong, missing = published.exceptAll(true).count(), true.exceptAll(published).count()
    if wrong or missing:
        print(f"{wrong} counts are wrong or published twice, and {missing} are missing.", file=sys.stderr)
        return False
    total = published.selectExpr("sum(clicks)").first()
    say(f"\n{published.count():,} counts of {total[0] if total else 0:,} clicks, each published once.")
    return True


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--guarantee", choices=("exactly-once", "at-least-once"), default="exactly-once",
        help="of the counts that are published (default: exactly-once)",
    )  # fmt: skip
    given = arguments.parse_args()
    with stage("click-counts", given) as ready:
        topics = {"clicks": ready.topic("clicks"), "counts": ready.topic("click-counts")}
        return 0 if run(ready, **topics, guarantee=given.guarantee) else 1


if __name__ == "__main__":
    sys.exit(main())
