"""ExactlyOnce, the guarantee of a write: begins tasks, publishes their messages (docs/spark/exactly-once.md)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.exactly_once.names import BatchName, Origin, in_stream, named_job, unnamed_job
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.writing.guarantee import TaskWriter
from kaspar.spark.writing.options import WriteOptions

_QUERY_ID, _RUN_ID, _BATCH_ID = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"


@dataclass(frozen=True)
class ExactlyOnce:
    """A Guarantee (writing/guarantee.py). The driver of a streaming query does not know the query and the batch when it
    creates this; the tasks ask Spark, and their messages carry both to the driver."""

    options: WriteOptions
    batch: BatchName | None
    """None for a streaming query."""

    @classmethod
    def of(cls, options: WriteOptions, *, streaming: bool) -> "ExactlyOnce":
        if streaming:
            if options.query is not None:
                raise InvalidOption(
                    "Options 'txnAppId' and 'txnVersion' are for batch writes: a streaming query has its own id and "
                    "batch ids."
                )
            return cls(options, None)
        claim = str(uuid.uuid4())
        if options.query is None or options.version is None:
            return cls(options, unnamed_job(claim))
        return cls(options, named_job(options.query, options.topic, options.version, claim))

    def begin(self) -> TaskWriter:
        from kaspar.spark.exactly_once.task import ExactlyOnceTask

        batch, task = self._batch_and_task()
        return ExactlyOnceTask(self.options, batch, task, is_stream=self.batch is None)

    def publish(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        from kaspar.spark.exactly_once.driver import publish_messages

        publish_messages(self.options, self.batch, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        from kaspar.spark.exactly_once.driver import abort_messages

        abort_messages(self.options, self.batch, messages)

    def _batch_and_task(self) -> tuple[BatchName, int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "every Spark task has a context"
        query = context.getLocalProperty(_QUERY_ID)
        run, batch_id = context.getLocalProperty(_RUN_ID), context.getLocalProperty(_BATCH_ID)
        if self.batch is not None:
            if query is not None and self.options.query is None:
                raise InvalidOption(
                    "A write with guarantee = exactly-once inside foreachBatch must name its batch, or it would be "
                    "published again when the batch is repeated: use kaspar.spark.write_batch, or the options txnAppId "
                    "and txnVersion."
                )
            return in_stream(self.batch, query, run), context.partitionId()
        if not (query and run and batch_id):
            raise InvalidOption(
                f"This version of Spark does not pass {_QUERY_ID}, {_RUN_ID} and {_BATCH_ID} to its tasks, which "
                "guarantee = exactly-once needs."
            )
        return BatchName(query, run, int(batch_id), Origin(query)), context.partitionId()
