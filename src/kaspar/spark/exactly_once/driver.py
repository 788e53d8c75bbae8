"""The driver's processes: from the messages of tasks to what publishing.py decides."""

import sys
from collections.abc import Sequence

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.spark.exactly_once.leftovers import finish_jobs_beside
from kaspar.spark.exactly_once.names import BatchName, is_unnamed_job
from kaspar.spark.exactly_once.process import Process, this_process
from kaspar.spark.exactly_once.publishing import forget, give_up, publish
from kaspar.spark.exactly_once.task import TaskWritten
from kaspar.spark.write_options import WriteOptions


def publish_messages(
    options: WriteOptions, batch: BatchName | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """`batch` is None for a streaming query, whose tasks tell it."""
    written = [message for message in messages if isinstance(message, TaskWritten)]
    if batch is None:
        if not written:
            return
        batch = written[0].batch
    process = this_process(options)
    tell_of_timeouts(process, batch)
    transactions = [each.transaction for each in written if each.transaction is not None]
    publish(process.parties, batch, transactions)
    if not transactions and (rows := sum(each.rows for each in written)):
        tell_of_repetition(batch, f"its {rows} rows are")
    if is_unnamed_job(batch):
        forget(process.parties, batch)
        finish_jobs_beside(process.parties, batch.query)


def give_up_messages(
    options: WriteOptions, batch: BatchName | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Where no task has finished each has aborted its own, and what dead ones left is found by the next run."""
    written = [message for message in messages if isinstance(message, TaskWritten)]
    if batch is None and written:
        batch = written[0].batch
    if batch is not None:
        give_up(this_process(options).parties, batch)


def tell_of_repetition(batch: BatchName, what: str) -> None:
    """Nothing is written of a batch that was published before: that is right, and must not go unnoticed."""
    print(f"kaspar: {batch} was published before: {what} not written again.", file=sys.stderr, flush=True)


def tell_of_timeouts(process: Process, batch: BatchName) -> None:
    """Once for each run, where brokers cannot prepare transactions; once for all jobs of a name in this process."""
    if process.coordinator.prepares or batch.query in process.told_of_timeouts:
        return
    process.told_of_timeouts.add(batch.query)
    last = process.log.state(batch.query).last
    if last is not None and last.batch.claim == batch.claim:
        return
    limit_ms = process.coordinator.max_timeout_ms
    print(
        f"kaspar: query {batch.query} is exactly once unless its driver is away for longer than "
        f"{process.coordinator.timeout_ms} ms between a decision and its end: these brokers do not prepare "
        f"transactions, and their transaction.max.timeout.ms is {limit_ms}. A Kaspar broker with "
        "transaction.two.phase.commit.enable=true has no such limit.",
        file=sys.stderr,
        flush=True,
    )
