"""Writes inside foreachBatch: all writes of a batch, to any number of topics, are published together, once.

    def publish(rows: DataFrame, batch_id: int) -> None:
        with kaspar.spark.batch(batch_id, options={"kafka.bootstrap.servers": "localhost:9092"}) as batch:
            batch.write(rows.where("amount > 100"), topic="large")
            batch.write(rows.groupBy("key").count().selectExpr("key", "string(count) as value"), topic="counts")

    stream.writeStream.foreachBatch(publish)...

`write_batch` is the short form for one DataFrame, which may have a `topic` column. Tasks write in transactions, as in
the data source, but their messages come back to this process, so that one decision names the transactions of all
writes. `Batch.run` has a program run in the tasks, in front of their writers (writing/in_tasks.py).
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError
from kaspar.exactly_once.announcing import announce, report_already_published
from kaspar.exactly_once.blocks import Blocks, Scope, Writes
from kaspar.exactly_once.decisions import QueryState
from kaspar.exactly_once.errors import Superseded
from kaspar.exactly_once.leftovers import finish_for_others
from kaspar.exactly_once.names import BLOCKS, BatchName, Origin, is_run_id
from kaspar.exactly_once.ownership import claim, refuse_outdated
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.process_state import ProcessState
from kaspar.exactly_once.publishing import abort_batch, abort_own_leftovers, publish
from kaspar.exactly_once.settling import finish_pending
from kaspar.spark.exactly_once.guarantee import ExactlyOnce
from kaspar.spark.exactly_once.process import this_process
from kaspar.spark.exactly_once.task import TaskWritten
from kaspar.spark.writing.in_tasks import TaskProgram, write_in_tasks
from kaspar.spark.writing.options import EXACTLY_ONCE, WriteOptions
from kaspar.spark.writing.schema import planned

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

_publishing = threading.Lock()  # queries of one program call this from their own threads, and share connections
_blocks = Blocks()


def write_batch(
    rows: "DataFrame",
    *,
    batch_id: int,
    query: str | None = None,
    topic: str | None = None,
    options: Mapping[str, str],
) -> None:
    """Write the rows once, however often the batch is repeated. Use batch() for several writes of a batch."""
    with batch(batch_id, query=query, options=options) as writes:
        writes.write(rows, topic=topic)


@contextmanager
def batch(batch_id: int, *, query: str | None = None, options: Mapping[str, str]) -> Iterator["Batch"]:
    """The writes of one batch. They are published when the block ends: all of them, or none if it raises. A batch has
    one block per name.

    `query` is the name under which batches are counted, by default the id of the streaming query in which this is
    called. A query with a new checkpoint counts from 0, so it needs a new name. `options` are the write options of the
    data source.
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
            writes.begin(_claim(process.participants, writes.name))
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
        with _publishing, suppress(KasparError, OSError):  # otherwise the next run aborts it
            _clean_up(process, writes.name, is_in_doubt=is_in_doubt)
        raise
    finally:
        writes.writes.close()
        _blocks.end(scope, is_published=is_published, is_in_doubt=is_in_doubt)


class Batch:
    """The writes of one batch, as batch() yields them."""

    def __init__(self, options: Mapping[str, str], name: BatchName) -> None:
        self.name = name
        self.is_published = False
        """Whether an earlier run has published the batch. If so, nothing is written."""
        self.note: str | None = None
        """A text that is stored with the decision that publishes the batch, until a later batch is published."""
        self.written: list[TaskWritten] = []
        self.writes = Writes(None)
        self._options = options

    def begin(self, state: QueryState) -> None:
        self.is_published = state.is_decided(self.name.batch_id)
        if state.last is not None and state.last.batch.batch_id == self.name.batch_id:
            self.writes = Writes(state.last)

    def write(self, rows: "DataFrame", *, topic: str | None = None) -> None:
        """Write the rows, as the data source does; without `topic`, to the topics in their `topic` column."""
        self._write(rows, planned(self._options_for(topic), rows.schema))

    def run(self, rows: "DataFrame", program: TaskProgram, *, topic: str | None = None) -> list[bytes] | None:
        """Run the program in the tasks of `rows`, and write what it yields. Returns what it returned in each task, in
        the order of the partitions of `rows`; None if the batch is already published, in which case nothing runs."""
        results = self._write(rows, self._options_for(topic), program)
        return None if self.is_published else results

    def _options_for(self, topic: str | None) -> WriteOptions:
        return WriteOptions.of(dict(self._options) if topic is None else {**self._options, "topic": topic})

    def _write(self, rows: "DataFrame", options: WriteOptions, program: TaskProgram | None = None) -> list[bytes]:
        with self.writes.one(self.name, options.topic):
            if self.is_published:
                return []
            reports = write_in_tasks(rows, options, ExactlyOnce(options, self.name), program)
            self.written += [report.message for report in reports if isinstance(report.message, TaskWritten)]
            return [report.result for report in reports]


def _claim(participants: Participants, name: BatchName) -> QueryState:
    """Claim the query for this run and complete earlier decisions. Spark may repeat the last batch of a stream, but
    none before it."""
    claim(participants, name)
    state = finish_pending(participants, name.query)
    if name.origin.stream is not None:
        refuse_outdated(name, state)
    return state


def _publish(process: ProcessState, writes: Batch) -> None:
    if writes.is_published:
        report_already_published(writes.name, "its rows are")
        return
    is_first = announce(process, writes.name)
    transactions = [each.transaction for each in writes.written if each.transaction is not None]
    publish(process.participants, writes.name, transactions, covers=writes.writes.covers, note=writes.note)
    if not transactions and writes.writes.has_failed:
        abort_own_leftovers(process.participants, writes.name, process.log.state(writes.name.query))
    if is_first:
        finish_for_others(process.participants)


def _clean_up(process: ProcessState, name: BatchName, *, is_in_doubt: bool) -> None:
    """Abort what the block wrote. If its decision may still reach the log, make it void."""
    if is_in_doubt:
        abort_batch(process.participants, name)
    else:
        abort_own_leftovers(process.participants, name, process.log.read_to_end(name.query))


def _nameless() -> KasparError:
    from pyspark.sql.utils import is_remote

    if is_remote():
        return KasparError(
            "Under Spark Connect foreachBatch does not know its streaming query, so batch() and write_batch() need "
            "query=: a name of your own that stays the same whenever the query is started on its checkpoint"
        )
    return KasparError(
        "batch() and write_batch() must be called inside foreachBatch, or with query=: a name of your own"
    )


def _running_query() -> tuple[str | None, str | None]:
    """The id of the streaming query that this thread runs for, and its run id."""
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
    """The run id of a query whose program sets its own job group. Such a group never changes, so it cannot be used
    instead: a run that repeats a batch would look like the run before it. Spark keeps the run ids of all sessions."""
    from pyspark.sql import SparkSession

    session, java = SparkSession.getActiveSession(), context._jvm
    if session is None or java is None:
        return None
    running = session._jsparkSession.sharedState().activeStreamingQueries()
    query = running.get(java.java.util.UUID.fromString(query_id))
    return None if query is None else str(query.runId())
