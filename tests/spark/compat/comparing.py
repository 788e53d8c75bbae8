"""The same options given to our data source and to Spark's own connector, and what each makes of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import Row

OURS, THEIRS = "kaspar", "kafka"

Options = Mapping[str, object]


def read(spark: SparkSession, source: str, bootstrap: str, options: Options) -> DataFrame:
    given = {name: str(value) for name, value in options.items()}
    return spark.read.format(source).options(**{"kafka.bootstrap.servers": bootstrap, **given}).load()


def rows(frame: DataFrame) -> list[Row]:
    return in_order(frame.collect())


def in_order(found: Iterable[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def both(spark: SparkSession, bootstrap: str, options: Options) -> tuple[list[Row], list[Row]]:
    """What the two read: ours, theirs. Their columns are the same, too."""
    ours, theirs = (read(spark, source, bootstrap, options) for source in (OURS, THEIRS))
    assert ours.schema == theirs.schema
    return rows(ours), rows(theirs)


@dataclass(frozen=True, slots=True)
class Streamed:
    """What a streaming query gave: its rows, and for each of its batches that had any, how many and where it ended."""

    rows: list[Row]
    batches: list[tuple[int, dict[str, Any]]]


def stream(spark: SparkSession, source: str, bootstrap: str, options: Options, checkpoint: Path) -> Streamed:
    """Run a query until it has read all that there is (AvailableNow)."""
    given = {key: str(value) for key, value in options.items()}
    found: list[Row] = []
    query = (
        spark.readStream.format(source)
        .options(**{"kafka.bootstrap.servers": bootstrap, **given})
        .load()
        .writeStream.foreachBatch(lambda batch, batch_id: found.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        batches = [
            (progress.numInputRows, json.loads(progress.sources[0].endOffset))
            for progress in query.recentProgress
            if progress.numInputRows
        ]
        return Streamed(in_order(found), batches)
    finally:
        query.stop()


def both_streams(spark: SparkSession, bootstrap: str, options: Options, folder: Path) -> tuple[Streamed, Streamed]:
    """What the two read, ours and theirs, each from a checkpoint of its own in that folder, old or new."""
    ours, theirs = (stream(spark, source, bootstrap, options, folder / source) for source in (OURS, THEIRS))
    return ours, theirs
