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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError
from kaspar.spark.exactly_once import ExactlyOnce
from kaspar.spark.exactly_once.blocks import Blocks, Scope, Writes
from kaspar.spark.exactly_once.decisions import QueryState
from kaspar.spark.exactly_once.driver import announce, tell_of_repetition
from kaspar.spark.exactly_once.leftovers import finish_for_others
from kaspar.spark.exactly_once.names import BLOCKS, BatchName, Origin, is_run_id
from kaspar.spark.exactly_once.ownership import claim
from kaspar.spark.exactly_once.parties import Parties, Superseded
from kaspar.spark.exactly_once.process import Process, this_process
from kaspar.spark.exactly_once.publishing import clear_own, give_up, publish
from kaspar.spark.exactly_once.settling import finish_pending
from kaspar.spark.exactly_once.task import TaskWritten, refuse_late_comer
from kaspar.spark.write_options import EXACTLY_ONCE, WriteOptions
from kaspar.spark.write_schema import check_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

_publishing = threading.Lock()  # queries of one program call from threads of their own, and share a connection
_blocks = Blocks()


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
    """The writes of one batch. They are published when the block ends, all of them, or none if it raises. A batch has
    one block under each name.

    `query` is the name under which batches are counted, by default the id of the streaming query that this is called
    in. A query with a new checkpoint counts from 0, so it needs a new name. `options` are those of the data source's
    writer.
    """
    query_id, run_id = _running_query()
    name = query or query_id
    if name is None:
        raise _nameless()
    given = {**options, "guarantee": EXACTLY_ONCE, "txnAppId": name, "txnVersion": str(batch_id)}
    process = this_process(WriteOptions.of(given))
    with _publishing:
        scope = Scope(process.cluster_id(), name, run_id)
    claim_name = _blocks.begin(scope, batch_id)
    writes = Batch(given, BatchName(name, claim_name, batch_id, Origin(query_id, kind=BLOCKS)))
    is_deciding = is_in_doubt = is_published = False
    try:
        with _publishing:
            writes.begin(_entered(process.parties, writes.name))
        yield writes
        writes.writes.close()
        writes.writes.check_done(writes.name)
        with _publishing:
            _blocks.check(scope)
            is_deciding = True
            _publish(process, writes)
        is_published = True
    except BaseException as problem:
        is_in_doubt = is_deciding and not isinstance(problem, Superseded)
        with _publishing, suppress(KasparError, OSError):  # the next run aborts it otherwise
            _clean_up(process, writes.name, is_in_doubt=is_in_doubt)
        raise
    finally:
        writes.writes.close()
        _blocks.end(scope, is_published=is_published, is_in_doubt=is_in_doubt)


class Batch:
    """What batch() gives."""

    def __init__(self, options: Mapping[str, str], name: BatchName) -> None:
        self.name = name
        self.is_published = False
        """Whether an earlier run has published it: then nothing is written."""
        self.written: list[TaskWritten] = []
        self.writes = Writes(None)
        self._options = options

    def begin(self, state: QueryState) -> None:
        self.is_published = state.is_decided(self.name.batch_id)
        if state.last is not None and state.last.batch.batch_id == self.name.batch_id:
            self.writes = Writes(state.last)

    def write(self, rows: "DataFrame", *, topic: str | None = None) -> None:
        """Write the rows, as the data source would; without `topic` to the topics of their `topic` column."""
        given = dict(self._options) if topic is None else {**self._options, "topic": topic}
        options = WriteOptions.of(given)
        check_schema(rows.schema, options.topic)
        with self.writes.one(self.name, options.topic):
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


def _entered(parties: Parties, name: BatchName) -> QueryState:
    """The query is this run's, and what was decided before is complete. Spark repeats the last batch of a stream, and
    none before it."""
    claim(parties, name)
    state = finish_pending(parties, name.query)
    if name.origin.stream is not None:
        refuse_late_comer(name, state)
    return state


def _publish(process: Process, writes: Batch) -> None:
    if writes.is_published:
        tell_of_repetition(writes.name, "its rows are")
        return
    is_first = announce(process, writes.name)
    transactions = [each.transaction for each in writes.written if each.transaction is not None]
    publish(process.parties, writes.name, transactions, covers=writes.writes.covers)
    if not transactions and writes.writes.has_failed:
        clear_own(process.parties, writes.name, process.log.state(writes.name.query))
    if is_first:
        finish_for_others(process.parties)


def _clean_up(process: Process, name: BatchName, *, is_in_doubt: bool) -> None:
    """Abort what the block wrote. Where its decision may be on its way to the log, no such decision may come to be
    valid any more."""
    if is_in_doubt:
        give_up(process.parties, name)
    else:
        clear_own(process.parties, name, process.log.look(name.query))


def _nameless() -> KasparError:
    from pyspark.sql.utils import is_remote

    if is_remote():
        return KasparError(
            "Spark Connect does not say which streaming query foreachBatch is called for, so batch() and write_batch() "
            "need query=: a name of your own, the same whenever the query is started on its checkpoint"
        )
    return KasparError("batch() and write_batch() are called inside foreachBatch, or with a query name of your own")


def _running_query() -> tuple[str | None, str | None]:
    """The ids of the streaming query that this thread runs for, and of its run."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return None, None
    query_id = context.getLocalProperty("sql.streaming.queryId")
    if not query_id:
        return None, None
    group = context.getLocalProperty("spark.jobGroup.id")
    return query_id, group if is_run_id(group) else _run_of(context, query_id) or group


def _run_of(context: "SparkContext", query_id: str) -> str | None:
    """The run of a query whose jobs the program has given a group of its own: for all its life that one is the same, so
    a run that repeats a batch of the one before it would be taken for that. Spark keeps the run for all sessions."""
    from pyspark.sql import SparkSession

    session, java = SparkSession.getActiveSession(), context._jvm
    if session is None or java is None:
        return None
    running = session._jsparkSession.sharedState().activeStreamingQueries()
    query = running.get(java.java.util.UUID.fromString(query_id))
    return None if query is None else str(query.runId())
