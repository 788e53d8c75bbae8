"""A topic archived in Parquet files, one folder per day, and one day written back to a topic.

Clicks of the last three days are produced to the topic `clicks`. A streaming query reads them as columns and writes
them to Parquet, into folders named day=2024-05-01 and so on, by the time of each click. Then only the folder of the
largest day is read and written to the topic `clicks-again`, and both topics are compared.
"""

import random
import sys
from pathlib import Path

from examples.spark.shop import CLICK, Clicks, Traffic, create_topic, fast_clock
from examples.spark.stage import Stage, parser, say, stage

DAYS = 3


def run(stage: Stage, *, clicks: str, again: str, archive: Path | None = None) -> bool:
    """Whether the day was written back unchanged."""
    from pyspark.sql import functions as f

    archive = archive or stage.folder / "clicks"
    create_topic(stage.bootstrap, clicks)
    create_topic(stage.bootstrap, again)
    rows = stage.reader(clicks, CLICK, streaming=True).select("value.*").withColumn("day", f.to_date("at"))
    query = (
        rows.writeStream.format("parquet")
        .partitionBy("day")
        .option("path", str(archive))
        .option("checkpointLocation", str(stage.folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    try:
        events = Clicks(random.Random(stage.seed))
        traffic = Traffic(stage.bootstrap, clicks, events, stage.rate)
        traffic.send_some()
        stage.warm_up(query)
        events.clock = fast_clock(DAYS, stage.seconds)
        with traffic:
            stage.watch(query, lambda _: f"{traffic.sent:,} clicks sent; {_folders(archive)}", stage.seconds)
        query.processAllAvailable()
    finally:
        query.stop()

    days = stage.spark.read.parquet(str(archive)).groupBy("day").count().orderBy("day").collect()
    for row in days:
        say(f"         day={row['day']}  {row['count']:>7,} clicks")
    fullest = max(days, key=lambda row: row["count"])["day"]

    of_that_day = stage.spark.read.parquet(str(archive)).where(f.col("day") == fullest).drop("day")
    (
        of_that_day.select(f.col("user").alias("key"), f.to_json(f.struct("*")).alias("value"))
        .write.format("kaspar")
        .option("kafka.bootstrap.servers", stage.bootstrap)
        .option("topic", again)
        .mode("append")
        .save()
    )
    return _same(stage, clicks, again, str(fullest))


def _folders(archive: Path) -> str:
    names = sorted(path.name for path in archive.glob("day=*"))
    return f"{len(names)} folders, the last is {names[-1]}" if names else "no folder yet"


def _same(stage: Stage, clicks: str, again: str, day: str) -> bool:
    from pyspark.sql import functions as f

    went_in = stage.reader(clicks, CLICK).select("value.*").where(f.to_date("at") == f.lit(day)).cache()
    came_back = stage.reader(again, CLICK).select("value.*").cache()
    missing, strange = went_in.exceptAll(came_back).count(), came_back.exceptAll(went_in).count()
    if missing or strange:
        print(f"Of {day}, {missing} clicks did not come back and {strange} are not its own.", file=sys.stderr)
        return False
    say(f"\nAll {came_back.count():,} clicks of {day} are back in the topic {again}.")
    return True


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--archive", type=Path, metavar="FOLDER", help="keep the Parquet files there (default: a temporary folder)"
    )
    given = arguments.parse_args()
    with stage("daily-folders", given) as ready:
        topics = {"clicks": ready.topic("clicks"), "again": ready.topic("clicks-again")}
        return 0 if run(ready, **topics, archive=given.archive) else 1


if __name__ == "__main__":
    sys.exit(main())
