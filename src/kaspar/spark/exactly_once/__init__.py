"""Exactly once: a batch is published once, whole or not at all, whatever crashes when (docs/spark/exactly-once.md).

Each task writes in a transaction of its own and prepares it. The driver appends one decision to a log that names them
all, and commits them: before that record nothing is visible, after it everything will be.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.spark.exactly_once.names import BatchName, Origin, in_stream, named_job, unnamed_job
from kaspar.spark.guarantee import TaskWriter
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.write_options import WriteOptions

__all__ = ["BatchName", "ExactlyOnce"]

_QUERY_ID, _RUN_ID, _BATCH_ID = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"


@dataclass(frozen=True)
class ExactlyOnce:
    """The guarantee (spark/guarantee.py). Made on the driver; in a streaming query it knows nothing of query and batch
    there, so its tasks ask Spark, and tell the driver by their messages."""

    options: WriteOptions
    batch: BatchName | None
    """None: of a streaming query."""

    @classmethod
    def of(cls, options: WriteOptions, *, streaming: bool) -> "ExactlyOnce":
        if streaming:
            if options.query is not None:
                raise InvalidOption(
                    "Options 'txnAppId' and 'txnVersion' are for batch writes: a streaming query has an id and batches "
                    "of its own."
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

    def publish(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None) -> None:
        from kaspar.spark.exactly_once.driver import publish_messages

        publish_messages(self.options, self.batch, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None) -> None:
        from kaspar.spark.exactly_once.driver import give_up_messages

        give_up_messages(self.options, self.batch, messages)

    def _batch_and_task(self) -> tuple[BatchName, int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "tasks of Spark have a context"
        query = context.getLocalProperty(_QUERY_ID)
        run, batch_id = context.getLocalProperty(_RUN_ID), context.getLocalProperty(_BATCH_ID)
        if self.batch is not None:
            if query is not None and self.options.query is None:
                raise InvalidOption(
                    "A write with guarantee = exactly-once inside foreachBatch must say which batch it is, or it would "
                    "be repeated with its batch: use kaspar.spark.write_batch, or the options txnAppId and txnVersion."
                )
            return in_stream(self.batch, query, run), context.partitionId()
        if not (query and run and batch_id):
            raise InvalidOption(
                f"This version of Spark does not tell its tasks {_QUERY_ID}, {_RUN_ID} and {_BATCH_ID}, without which "
                "guarantee = exactly-once cannot be kept."
            )
        return BatchName(query, run, int(batch_id), Origin(query)), context.partitionId()
