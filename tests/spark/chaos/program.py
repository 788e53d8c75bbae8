"""A streaming query as people run it, in a process of its own: `python -m tests.spark.chaos.program '<settings>'`.

Every record of one topic becomes one record of two others in turn. It goes on until it is killed, or ends when it has
read all that there is (`drain`).
"""

import json
import sys
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession

import kaspar.spark
from tests.peers.kafka import LIGHT_JVM

SINK, FOREACH_BATCH = "sink", "foreachBatch"  # the two ways to write


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    bootstrap: str
    source: str
    targets: tuple[str, str]
    checkpoint: str
    way: str = SINK
    guarantee: str = "exactly-once"
    master: str = "local[2]"
    drain: bool = False
    rows_in_a_batch: int = 500
    config: dict[str, str] | None = None
    client: dict[str, str] | None = None
    """More settings of its Kafka clients, with Java's names: how they log in, and on which listener."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.spark.chaos.program", json.dumps(asdict(self))]

    @property
    def kafka_options(self) -> dict[str, str]:
        settings = {"bootstrap.servers": self.bootstrap, **(self.client or {})}
        return {f"kafka.{name}": value for name, value in settings.items()}


def main() -> None:
    fields = json.loads(sys.argv[1])
    settings = ProgramSettings(**{**fields, "targets": tuple(fields["targets"])})
    config = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": " ".join(LIGHT_JVM),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join(LIGHT_JVM),
        "spark.deploy.maxExecutorRetries": "-1",  # an executor that is killed ever again is replaced ever again
        "spark.task.maxFailures": "8",
        "spark.sql.streaming.stopTimeout": "10s",
        **(settings.config or {}),
    }
    session = kaspar.spark.session("chaos", settings.master, config)
    run(session, settings)


def run(session: SparkSession, settings: ProgramSettings) -> None:
    events = (
        session.readStream.format("kaspar")
        .options(
            **settings.kafka_options,
            subscribe=settings.source,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=str(settings.rows_in_a_batch),
        )
        .load()
        .selectExpr(
            "key",
            "value",
            f"if(offset % 2 = 0, '{settings.targets[0]}', '{settings.targets[1]}') AS topic",
        )
    )
    writer = events.writeStream.option("checkpointLocation", settings.checkpoint)
    if settings.drain:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime="100 milliseconds")
    if settings.way == FOREACH_BATCH:
        writer = writer.foreachBatch(lambda rows, batch_id: write(rows, batch_id, settings))
    else:
        writer = writer.format("kaspar").options(**settings.kafka_options, guarantee=settings.guarantee)
    writer.start().awaitTermination()


def write(rows: DataFrame, batch_id: int, settings: ProgramSettings) -> None:
    """Two writes, each to a topic of its own, that share one decision."""
    with kaspar.spark.batch(batch_id, options=settings.kafka_options) as both:
        for target in settings.targets:
            both.write(rows.where(f"topic = '{target}'").drop("topic"), topic=target)


if __name__ == "__main__":
    main()
