"""The driver's side: publishes or aborts the transactions in the tasks' messages (kaspar.exactly_once.publishing)."""

from collections.abc import Sequence

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.exactly_once.announcing import announce, report, report_already_published
from kaspar.exactly_once.decisions import ANY_TOPIC, BatchDecision
from kaspar.exactly_once.leftovers import finish_for_others
from kaspar.exactly_once.names import BatchName, is_unnamed_job
from kaspar.exactly_once.publishing import abort_batch, forget_job, publish
from kaspar.spark.exactly_once.process import this_process
from kaspar.spark.exactly_once.task import TaskWritten
from kaspar.spark.writing.options import WriteOptions


def publish_messages(
    options: WriteOptions, batch: BatchName | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Publish the transactions of the tasks. `batch` is None for a streaming query. If tasks have written, the batch is
    taken from their messages, which also contain the stream that it belongs to, if any."""
    written = [message for message in messages if isinstance(message, TaskWritten)]
    if written:
        batch = written[0].batch
    if batch is None:
        return
    process = this_process(options)
    is_first = announce(process, batch)
    transactions = [each.transaction for each in written if each.transaction is not None]
    target = options.topic or ANY_TOPIC
    publish(process.participants, batch, transactions, covers=[target])
    if not transactions and (rows := sum(each.rows for each in written)):
        last = process.log.state(batch.query).last
        report_already_published(batch, f"its {rows} rows are", elsewhere=_other_topics(last, batch, target))
    if is_unnamed_job(batch):
        forget_job(process.participants, batch)
    if is_first:
        finish_for_others(process.participants)


def abort_messages(
    options: WriteOptions, batch: BatchName | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Abort the transactions of a failed job. If no task has finished, each has aborted its own transaction; the next
    run aborts those of killed tasks."""
    is_job = batch is not None
    written = [message for message in messages if isinstance(message, TaskWritten)]
    if batch is None and written:
        batch = written[0].batch
    if batch is None:
        return
    state = abort_batch(this_process(options).participants, batch)
    if is_job and state.last is not None and state.last.batch[:3] == batch[:3]:
        report(f"{batch} is published all the same: it was decided before the job failed. Do not repeat it.")


def _other_topics(last: BatchDecision | None, batch: BatchName, target: str) -> str:
    """The topics where the batch was published, if the program has since been changed to write to another topic."""
    if last is None or last.covers is None or last.batch.batch_id != batch.batch_id or target in last.covers:
        return ""
    return ", ".join(last.covers)
