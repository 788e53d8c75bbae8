"""A task's part: its record batches are written in its own transaction. A task without rows opens none."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.client.producing import RawProducer
from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.decisions import DecidedTransaction
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.ownership import refuse_outdated
from kaspar.spark.exactly_once.process import this_process
from kaspar.spark.writing.options import WriteOptions


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):
    """A task's message to the driver."""

    batch: BatchName
    rows: int
    transaction: DecidedTransaction | None


class ExactlyOnceTask:
    """One attempt of one task (a TaskWriter)."""

    def __init__(self, options: WriteOptions, batch: BatchName, task: int, *, is_stream: bool) -> None:
        self.end_offsets: Mapping[TopicPartition, int] = {}
        self._options = options
        self._is_stream = is_stream
        self._batch = batch
        self._task = task
        self._process = this_process(options)
        self._attempt: Attempt | None = None
        self._producer: RawProducer | None = None
        self._topics: set[str] = set()

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        return self._begun().partitions_of(topic, at_least)

    def send(self, batches: Sequence[tuple[TopicPartition, memoryview]]) -> None:
        if not batches:
            return
        producer = self._begun()
        if self._attempt is not None:
            self._topics.update(partition.topic for partition, _ in batches)
            producer.send(batches)

    def finish(self, rows: int) -> WriterCommitMessage:
        if self._attempt is None or self._producer is None:
            return TaskWritten(self._batch, rows, None)
        self._producer.flush()
        self.end_offsets = self._producer.take_end_offsets()
        self._attempt.prepare()
        self._process.idle_producer = self._producer
        written = DecidedTransaction(
            self._attempt.transactional_id, self._attempt.producer, self._task, tuple(sorted(self._topics))
        )
        return TaskWritten(self._batch, rows, written)

    def abandon(self) -> None:
        if self._producer is not None:
            self._producer.close()
        if self._attempt is not None:
            with suppress(KasparError, OSError):  # otherwise the next publisher aborts it
                self._attempt.abort(is_urgent=False)

    def _begun(self) -> RawProducer:
        """The producer of the task's transaction. If the batch is decided, one that only looks up partitions."""
        if self._producer is not None:
            return self._producer
        process, terms = self._process, self._options.producer.terms
        attempt = Attempt.begin(process.participants, process.slots, self._batch)
        if attempt is None:
            if self._is_stream or self._batch.origin.stream is not None:
                refuse_outdated(self._batch, process.log.state(self._batch.query))
            self._producer = RawProducer(process.client, producer=None, terms=terms)
            return self._producer
        self._attempt = attempt
        self._producer = process.producer_of(attempt, terms)
        return self._producer
