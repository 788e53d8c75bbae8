"""Writes inside foreachBatch: all writes of a batch, to any number of topics, are published together, once.

    def publish(rows: DataFrame, batch_id: int) -> None:
        with kaspar.spark.batch(batch_id, options={"kafka.bootstrap.servers": "localhost:9092"}) as batch:
            batch.write(rows.where("amount > 100"), topic="large")
            batch.write(rows.groupBy("key").count().selectExpr("key", "string(count) as value"), topic="counts")

    stream.writeStream.foreachBatch(publish)...

`write_batch` is the short form for one DataFrame, which may have a `topic` column. Tasks write in transactions, as
those of the data source do, but their messages come back to this process, so that one decision names those of all
writes.
"""

import pickle
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError
from kaspar.spark.exactly_once import ExactlyOnce
from kaspar.spark.exactly_once.driver import announce, tell_of_repetition
from kaspar.spark.exactly_once.names import BatchName
from kaspar.spark.exactly_once.ownership import claim
from kaspar.spark.exactly_once.parties import Parties
from kaspar.spark.exactly_once.process import Process, this_process
from kaspar.spark.exactly_once.publishing import clear_own, give_up, publish
from kaspar.spark.exactly_once.settling import finish_pending
from kaspar.spark.exactly_once.task import TaskWritten, refuse_late_comer
from kaspar.spark.write_options import EXACTLY_ONCE, WriteOptions
from kaspar.spark.write_schema import check_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_publishing = threading.Lock()  # queries of one program call from threads of their own, and share a connection
_claims: dict[tuple[str, str | None], str] = {}
"""Under which name this process publishes for a streaming query, in each of its runs. Elsewhere each batch is a run."""


def write_batch(
    rows: "DataFrame",
    *,
    batch_id: int,
    query: str | None = None,
    topic: str | None = None,
    options: Mapping[str, str],
) -> None:
    """Write the rows once, however often the batch is repeated. For several writes of a batch see batch()."""
    with batch(batch_id, query=query, options=options) as writes:
        writes.write(rows, topic=topic)


@contextmanager
def batch(batch_id: int, *, query: str | None = None, options: Mapping[str, str]) -> Iterator["Batch"]:
    """The writes of one batch. They are published when the block ends, all of them, or none if it raises.

    `query` is the name under which batches are counted, by default the id of the streaming query that this is called
    in. A query with a new checkpoint counts from 0, so it needs a new name. `options` are those of the data source's
    writer.
    """
    query_id, run_id = _running_query()
    name = query or query_id
    if name is None:
        raise KasparError("batch() and write_batch() are called inside foreachBatch, or with a query name of your own")
    given = {**options, "guarantee": EXACTLY_ONCE, "txnAppId": name, "txnVersion": str(batch_id)}
    process = this_process(WriteOptions.of(given))
    claim_name = str(uuid.uuid4())
    if run_id is not None:
        claim_name = _claims.setdefault((name, run_id), claim_name)
    writes = Batch(given, BatchName(name, claim_name, batch_id))
    try:
        with _publishing:
            writes.is_published = _is_published(process.parties, writes.name, is_stream=run_id is not None)
        yield writes
    except BaseException:
        with _publishing, suppress(KasparError, OSError):  # the next run aborts it otherwise
            clear_own(process.parties, writes.name, process.log.look(name))
        raise
    with _publishing:
        _publish(process, writes, (name, run_id))


class Batch:
    """What batch() gives."""

    def __init__(self, options: Mapping[str, str], name: BatchName) -> None:
        self.name = name
        self.is_published = False
        """Whether an earlier run has published it: then nothing is written."""
        self.written: list[TaskWritten] = []
        self._options = options

    def write(self, rows: "DataFrame", *, topic: str | None = None) -> None:
        """Write the rows, as the data source would; without `topic` to the topics of their `topic` column."""
        given = dict(self._options) if topic is None else {**self._options, "topic": topic}
        options = WriteOptions.of(given)
        check_schema(rows.schema, options.topic)
        if not self.is_published:
            messages = rows.mapInArrow(_writer(ExactlyOnce(options, self.name)), "message binary").collect()
            self.written += [pickle.loads(each.message) for each in messages]


def _writer(guarantee: ExactlyOnce) -> Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]:
    def write(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        from kaspar.spark.encoding import write_rows
        from kaspar.spark.sentences import in_one_sentence

        with in_one_sentence():
            message = write_rows(batches, guarantee.options, guarantee)
        yield pa.record_batch([pa.array([pickle.dumps(message)], pa.binary())], names=["message"])

    return write


def _is_published(parties: Parties, name: BatchName, *, is_stream: bool) -> bool:
    """Spark repeats the last batch of a stream, and none before it."""
    claim(parties, name)
    state = finish_pending(parties, name.query)
    if is_stream:
        refuse_late_comer(name, state)
    if state.last is not None and state.last.batch == name:
        raise KasparError(
            f"{name} was written and published by this run already: put all writes of a batch into one "
            "`with kaspar.spark.batch(...)` block"
        )
    return state.is_decided(name.batch_id)


def _publish(process: Process, writes: Batch, claimed: tuple[str, str | None]) -> None:
    if writes.is_published:
        tell_of_repetition(writes.name, "its rows are")
        return
    announce(process, writes.name)
    transactions = [each.transaction for each in writes.written if each.transaction is not None]
    try:
        publish(process.parties, writes.name, transactions)
    except BaseException:
        _claims.pop(claimed, None)  # whether the decision is in the log may not be known: another name decides anew
        with suppress(KasparError, OSError):
            give_up(process.parties, writes.name)
        raise


def _running_query() -> tuple[str | None, str | None]:
    """The ids of the streaming query that this thread runs for, and of its run."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return None, None
    query_id = context.getLocalProperty("sql.streaming.queryId")
    return query_id, context.getLocalProperty("spark.jobGroup.id") if query_id else None
