"""The archive of the classes of Spark's driver; as a program (`python -m`), the queries from which it is made."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.peers.class_archives import archive_flags
from tests.peers.downloads import BuildError, run_step

FLAGS = "KASPAR_TRAINING_FLAGS"
BATCHES = 3


def spark_archive_flags() -> tuple[str, ...]:
    import pyspark

    def train(folder: Path, flags: Sequence[str]) -> None:
        root = Path(__file__).parent.parent.parent
        environment = {FLAGS: " ".join(flags), "PYTHONPATH": os.pathsep.join([str(root), *sys.path[1:]])}
        run_step(
            [sys.executable, "-m", "tests.peers.spark_classes"],
            folder=folder,
            environment=environment,
            failure=BuildError,
        )

    version = Path(pyspark.__file__).with_name("version.py")
    return archive_flags(f"spark-{pyspark.__version__}", [version, Path(__file__)], train)


def run_queries() -> None:
    """A stream with state through Python workers, and a query over files."""
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col, udf

    import kaspar.spark
    from kaspar.spark.running.sessions import end

    flags = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {os.environ[FLAGS]}"
    session = kaspar.spark.session(
        "training", "local[2]", {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": flags}
    )
    session.range(100).write.parquet("numbers")
    next_number = udf(lambda number: number + 1, "long")
    counted = session.read.parquet("numbers").withColumn("next", next_number(col("id"))).groupBy("next").count()
    assert counted.count() == 100

    seen: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        batch.collect()
        seen.append(number)

    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rows.groupBy("value").count().writeStream.outputMode("update")
    query = counts.option("checkpointLocation", "checkpoint").foreachBatch(take).start()
    while len(seen) < BATCHES:
        query.awaitTermination(0.1)  # type: ignore[arg-type]
    query.stop()
    end(session)


if __name__ == "__main__":
    run_queries()
