"""A task's part: a transaction of its own, from the first record to prepared.

Nothing is opened for a task without rows, nor for a batch that an earlier run has decided already. An attempt that has
prepared its transaction looks at the log once more: if the batch was decided meanwhile, nobody waits for this attempt,
and it aborts what it wrote; if it was not, whoever decides sees the transaction and aborts it unless it is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import Ending, add_partitions
from kaspar.spark.exactly_once.decisions import DecidedTransaction, Standing
from kaspar.spark.exactly_once.names import BatchName
from kaspar.spark.exactly_once.ownership import claim, superseded
from kaspar.spark.exactly_once.parties import NotPublished
from kaspar.spark.exactly_once.process import Process, this_process
from kaspar.spark.write_options import WriteOptions


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):
    """All that reaches the driver of a task."""

    batch: BatchName
    rows: int
    transaction: DecidedTransaction | None


class ExactlyOnceTask:
    """One attempt of one task (a TaskWriter)."""

    def __init__(self, options: WriteOptions, batch: BatchName, task: int) -> None:
        self._options = options
        self._batch = batch
        self._task = task
        self._process: Process = this_process(options)
        self._looking: RawProducer | None = None
        self._transaction: _Transaction | None = None
        self._is_over = False

    def partitions_of(self, topic: str) -> TopicPartitions:
        return self._begun().partitions_of(topic)

    def send(self, batches: Sequence[tuple[TopicPartition, memoryview]]) -> None:
        producer = self._begun()
        if self._transaction is not None:
            self._transaction.topics.update(partition.topic for partition, _ in batches)
            producer.send(batches)

    def finish(self, rows: int) -> WriterCommitMessage:
        if self._transaction is None:
            self._close()
            return TaskWritten(self._batch, rows, None)
        transaction = self._transaction
        transaction.producer.flush()
        transaction.pair = self._process.coordinator.prepare(transaction.transactional_id, transaction.pair)
        self._check_wanted()
        self._close()
        return TaskWritten(self._batch, rows, transaction.decided(self._task))

    def abandon(self) -> None:
        if self._transaction is not None:
            self._close()
            self._process.coordinator.end([self._transaction.abort()])

    def _begun(self) -> RawProducer:
        """The transaction's producer; one that only looks where nothing will be written."""
        if self._transaction is not None:
            return self._transaction.producer
        if self._looking is None:
            process, batch = self._process, self._batch
            state = process.log.state(batch.query)
            if state.standing(batch.claim) is not Standing.OWNER:
                state = claim(process.parties, batch)
            terms = self._options.producer.terms
            if state.is_decided(batch.batch_id):
                self._looking = RawProducer(process.client, producer=None, terms=terms)
                return self._looking
            self._transaction = _begin(process, self._options, str(process.slots.take(batch, state.generation)))
            return self._transaction.producer
        return self._looking

    def _check_wanted(self) -> None:
        assert self._transaction is not None
        state = self._process.log.look(self._batch.query)
        if state.standing(self._batch.claim) is Standing.OWNER and not state.is_decided(self._batch.batch_id):
            return
        self.abandon()
        if state.standing(self._batch.claim) is not Standing.OWNER:
            raise superseded(self._batch, state)
        raise NotPublished(
            f"{self._batch} was published without this attempt of task {self._task}, which came too late"
        )

    def _close(self) -> None:
        if self._looking is not None:
            self._looking.close()
        if self._transaction is not None:
            self._transaction.producer.close()


@dataclass(slots=True)
class _Transaction:
    transactional_id: str
    pair: ProducerIdAndEpoch
    producer: RawProducer
    topics: set[str]

    def decided(self, task: int) -> DecidedTransaction:
        return DecidedTransaction(self.transactional_id, self.pair, task, tuple(sorted(self.topics)))

    def abort(self) -> Ending:
        return Ending(self.transactional_id, self.pair, False)


def _begin(process: Process, options: WriteOptions, transactional_id: str) -> _Transaction:
    pair = process.coordinator.begin(transactional_id)
    before_first = None
    if process.coordinator.adds_partitions:
        before_first = partial(add_partitions, process.client, transactional_id, pair)
    producer = RawProducer(
        process.client,
        producer=pair,
        terms=options.producer.terms,
        transactional_id=transactional_id,
        before_first=before_first,
    )
    return _Transaction(transactional_id, pair, producer, set())
