"""A pipeline that counts, for the tests: `python counting.py FOLDER`, or under the supervisor.

Its micro-batches write to files in FOLDER: `batches` has a line when a batch starts and one when it ends, `session` the
application's id. A file `fail` there fails the next batch; `slow` makes batches take their time. Rows pass a function
of steps.py, a module beside the program.
"""

import importlib
import os
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kaspar.pipelines
from kaspar.pipelines import QueryPipeline

FOLDER = Path(sys.argv[1])
steps = importlib.import_module("steps")


def note(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as opened:
        opened.write(f"{line}\n")


def write(rows: DataFrame, batch_id: int) -> None:
    if (FOLDER / "fail").exists():
        (FOLDER / "fail").unlink()
        raise ValueError(f"told to fail in {FOLDER.name}")
    note("batches", f"start {batch_id} {os.getpid()}")
    total = rows.count()
    if (FOLDER / "slow").exists():
        time.sleep(1.5)
    note("batches", f"end {batch_id} {total}")


def start(session: SparkSession) -> StreamingQuery:
    note("session", session.sparkContext.applicationId)
    rows = session.readStream.format("rate-micro-batch").options(rowsPerBatch=10, numPartitions=1).load()
    query = rows.mapInArrow(steps.repeat, rows.schema).writeStream.queryName(f"count-{FOLDER.name}").foreachBatch(write)
    return (
        query.option("checkpointLocation", str(FOLDER / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )


if __name__ == "__main__":
    kaspar.pipelines.run(QueryPipeline(FOLDER.name, start, f"counts rows into {FOLDER}"))
    note("session", "returned")
