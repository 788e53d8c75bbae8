"""Prints which transactions a publishing process uses, once per run, and which batches are not written again."""

import logging
import sys

from kaspar.exactly_once.coordinator import BrokerCoordinator
from kaspar.exactly_once.deadlines import latest_age_ms
from kaspar.exactly_once.names import UNNAMED, BatchName, is_unnamed_job
from kaspar.exactly_once.process_state import ProcessState

log = logging.getLogger(__name__)


def announce(process: ProcessState, batch: BatchName) -> bool:
    """Print and log which kind of transactions is used: once per run, and once for all unnamed jobs. Returns whether
    this is the first batch of a run."""
    is_job = is_unnamed_job(batch)
    name = UNNAMED if is_job else batch.query
    if name in process.announced:
        return is_job
    process.announced.add(name)
    last = process.log.state(batch.query).last
    if last is not None and last.batch.claim == batch.claim:
        return False
    kind = describe_transactions(process.coordinator)
    log.info(f"Query {batch.query} publishes exactly once, {kind}.")
    report(f"query {batch.query} publishes exactly once, {kind}.")
    return True


def report_already_published(batch: BatchName, what: str, *, elsewhere: str = "") -> None:
    """Writing nothing for a batch that is already published is correct, but the user has to know."""
    where = f" to {elsewhere}" if elsewhere else ""
    report(f"{batch} was already published{where}: {what} not written again.")


def report(sentence: str) -> None:
    print(f"kaspar: {sentence}", file=sys.stderr, flush=True)


def describe_transactions(coordinator: BrokerCoordinator) -> str:
    if coordinator.prepares:
        return "with prepared transactions, which wait for their decision without a timeout"
    timeout_ms = coordinator.timeout_ms
    limit = "" if coordinator.max_timeout_ms is None else f" of {coordinator.max_timeout_ms}"
    return (
        f"with transactions that have a timeout of {timeout_ms} ms: these brokers do not prepare transactions. A batch "
        f"fails if it is not decided within {latest_age_ms(timeout_ms)} ms of its first record, and if its driver dies "
        "after that, the query must be running again before the timeout expires. kafka.transaction.timeout.ms changes "
        f"it, up to the brokers' transaction.max.timeout.ms{limit}. A Kaspar broker prepares "
        "transactions, unless its transaction.two.phase.commit.enable is false"
    )
