"""The driver's processes: from the messages of tasks to what publishing.py decides."""

import logging
import sys
from collections.abc import Sequence

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.spark.exactly_once.coordinator import BrokerCoordinator
from kaspar.spark.exactly_once.deadlines import latest_age_ms
from kaspar.spark.exactly_once.decisions import ANY_TOPIC, Decision
from kaspar.spark.exactly_once.leftovers import finish_for_others
from kaspar.spark.exactly_once.names import UNNAMED, BatchName, is_unnamed_job
from kaspar.spark.exactly_once.process import Process, this_process
from kaspar.spark.exactly_once.publishing import forget, give_up, publish
from kaspar.spark.exactly_once.task import TaskWritten
from kaspar.spark.write_options import WriteOptions

log = logging.getLogger(__name__)


def publish_messages(
    options: WriteOptions, batch: BatchName | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """`batch` is None for a streaming query. Tasks know more of it: whether it is of a stream, and of which."""
    written = [message for message in messages if isinstance(message, TaskWritten)]
    if written:
        batch = written[0].batch
    if batch is None:
        return
    process = this_process(options)
    is_first = announce(process, batch)
    transactions = [each.transaction for each in written if each.transaction is not None]
    target = options.topic or ANY_TOPIC
    publish(process.parties, batch, transactions, covers=[target])
    if not transactions and (rows := sum(each.rows for each in written)):
        last = process.log.state(batch.query).last
        tell_of_repetition(batch, f"its {rows} rows are", elsewhere=_other_topics(last, batch, target))
    if is_unnamed_job(batch):
        forget(process.parties, batch)
    if is_first:
        finish_for_others(process.parties)


def give_up_messages(
    options: WriteOptions, batch: BatchName | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Where no task has finished each has aborted its own, and what dead ones left is found by the next run."""
    is_job = batch is not None
    written = [message for message in messages if isinstance(message, TaskWritten)]
    if batch is None and written:
        batch = written[0].batch
    if batch is None:
        return
    state = give_up(this_process(options).parties, batch)
    if is_job and state.last is not None and state.last.batch[:3] == batch[:3]:
        print(
            f"kaspar: {batch} is published all the same: it was decided before the job failed. Do not repeat it.",
            file=sys.stderr,
            flush=True,
        )


def _other_topics(last: Decision | None, batch: BatchName, target: str) -> str:
    """Where the batch went, if the program was changed since to write to another topic."""
    if last is None or last.covers is None or last.batch.batch_id != batch.batch_id or target in last.covers:
        return ""
    return ", ".join(last.covers)


def tell_of_repetition(batch: BatchName, what: str, *, elsewhere: str = "") -> None:
    """Nothing is written of a batch that was published before: that is right, and must not go unnoticed."""
    where = f" to {elsewhere}" if elsewhere else ""
    print(f"kaspar: {batch} was published before{where}: {what} not written again.", file=sys.stderr, flush=True)


def announce(process: Process, batch: BatchName) -> bool:
    """Tell once for each run how its batches are kept to be published once: on the terminal, and in the log; once for
    all jobs without a name. Whether it is the first batch of a run."""
    is_job = is_unnamed_job(batch)
    name = UNNAMED if is_job else batch.query
    if name in process.announced:
        return is_job
    process.announced.add(name)
    last = process.log.state(batch.query).last
    if last is not None and last.batch.claim == batch.claim:
        return False
    way = way_of(process.coordinator)
    log.info(f"Query {batch.query} publishes exactly once, {way}.")
    print(f"kaspar: query {batch.query} publishes exactly once, {way}.", file=sys.stderr, flush=True)
    return True


def way_of(coordinator: BrokerCoordinator) -> str:
    if coordinator.prepares:
        return "with prepared transactions, which wait for their decision without a timeout"
    timeout_ms = coordinator.timeout_ms
    return (
        f"with transactions that have a timeout of {timeout_ms} ms: these brokers do not prepare transactions. A batch "
        f"fails if it is not decided within {latest_age_ms(timeout_ms)} ms of its first record, and if its driver dies "
        "after that, the query must be running again before the timeout is over. kafka.transaction.timeout.ms sets "
        f"another, up to the brokers' transaction.max.timeout.ms of {coordinator.max_timeout_ms}. A Kaspar broker "
        "prepares transactions, unless its transaction.two.phase.commit.enable is false"
    )
