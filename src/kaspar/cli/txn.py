"""`kaspar txn`: lists and aborts transactions, and finds hanging ones."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import ErrorCode, Refused
from kaspar.cli.asking import confirm, yes_option
from kaspar.cli.command import Group
from kaspar.cli.completing import complete_topics
from kaspar.cli.failures import FAILED, NotFound, WrongUsage
from kaspar.cli.output import Column, Done, Row
from kaspar.cli.session import Session, common_options
from kaspar.cli.topic_lookup import existing_topics

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.client.admin.transactions import TransactionDescription
    from kaspar.tools.transactions.hanging import OpenTransaction

_EXAMPLES: Final = """\
examples:
  kaspar txn list --open
  kaspar txn describe payments-1
  kaspar txn abort payments-1                 also fences its producer
  kaspar txn hanging                          transactions that will never end
"""
_OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


@click.group("txn", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show transactions, and abort those that block read_committed consumers."""


@command.command("list", epilog=_EXAMPLES)
@click.option("--open", "is_open", is_flag=True, help="Only open transactions.")
@common_options
def list_transactions(session: Session, is_open: bool) -> None:
    """List the transactional ids and the states of their last transactions."""
    from kaspar.client.admin import transactions

    with session.admin() as admin:
        found = transactions.list_transactions(admin)
    rows = [
        {
            "transactional_id": each.transactional_id,
            "state": each.state,
            "producer_id": each.producer_id,
            "coordinator": each.coordinator_id,
        }
        for each in sorted(found, key=lambda each: each.transactional_id)
        if not is_open or each.state in _OPEN_STATES
    ]
    columns = [
        Column("transactional_id", "TRANSACTIONAL ID"),
        Column("state", "STATE"),
        Column("producer_id", "PRODUCER"),
        Column("coordinator", "COORDINATOR"),
    ]
    session.output.table(columns, rows, empty="There are no transactions.")


@command.command("describe", epilog=_EXAMPLES)
@click.argument("transactional_ids", nargs=-1, required=True, metavar="ID...")
@common_options
def describe(session: Session, transactional_ids: Sequence[str]) -> None:
    """Show the state of transactions, how long they have been open, and their partitions."""
    with session.admin() as admin:
        rows = [_row(each) for each in _existing(admin, transactional_ids)]
    columns = [
        Column("transactional_id", "TRANSACTIONAL ID"),
        Column("state", "STATE"),
        Column("open_ms", "OPEN", lambda value: f"{value / 1000:.0f}s" if isinstance(value, int) else "-"),
        Column("timeout_ms", "TIMEOUT", lambda value: f"{value / 1000:g}s" if isinstance(value, int) else "-"),
        Column("producer_id", "PRODUCER"),
        Column("producer_epoch", "EPOCH"),
        Column("coordinator", "COORDINATOR"),
        Column("partitions", "PARTITIONS"),
    ]
    session.output.table(columns, rows)


def _row(transaction: "TransactionDescription") -> Row:
    start = transaction.start_time_ms
    return {
        "transactional_id": transaction.transactional_id,
        "state": transaction.state,
        "start_time_ms": start,
        "open_ms": None if start is None else max(0, time.time_ns() // 1_000_000 - start),
        "timeout_ms": transaction.timeout_ms,
        "producer_id": transaction.producer.producer_id,
        "producer_epoch": transaction.producer.producer_epoch,
        "coordinator": transaction.coordinator_id,
        "partitions": [str(where) for where in transaction.partitions],
    }


def _existing(admin: "Admin", transactional_ids: Sequence[str]) -> "list[TransactionDescription]":
    from kaspar.client.admin.transactions import describe_transactions

    wanted = list(dict.fromkeys(transactional_ids))
    found = describe_transactions(admin, wanted)
    existing = []
    for name in wanted:
        each = found[name]
        if isinstance(each, Refused):
            if each.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise NotFound(f"there is no transactional id {name}: 'kaspar txn list' lists them")
            raise each
        existing.append(each)
    return existing


@command.command(
    "hanging",
    epilog="""\
examples:
  kaspar txn hanging
  kaspar txn hanging --topic orders --older-than 1h
  kaspar txn hanging --abort                  abort those that are found
""",
)
@click.option("--topic", metavar="TOPIC", shell_complete=complete_topics, help="Search only this topic.")
@click.option(
    "--older-than",
    default="15 minutes",
    metavar="DURATION",
    help="Only transactions without a record for this long (default: 15 minutes, the brokers' default maximum).",
)
@click.option("--abort", "is_abort", is_flag=True, help="Abort those that are found.")
@yes_option
@common_options
def hanging(session: Session, topic: str | None, older_than: str, is_abort: bool, yes: bool) -> int:
    """Find transactions that are open on a partition but unknown to any coordinator: read_committed consumers wait for
    them forever. The exit code is 1 if some are found and not aborted."""
    from kaspar.cli.records.times import parse_duration
    from kaspar.tools.transactions.hanging import find_hanging

    try:
        silent_ms = int(parse_duration(older_than).total_seconds() * 1000)
    except ValueError as problem:
        raise WrongUsage(f"--older-than: {problem}") from None
    since_ms = time.time_ns() // 1_000_000 - silent_ms
    with session.admin() as admin:
        if topic is not None:
            existing_topics(admin, [topic])
        found = find_hanging(admin, topic=topic, partition=None, broker_id=None, silent_since_ms=since_ms)
        if is_abort and found:
            where = ", ".join(sorted({str(each.partition) for each in found}))
            confirm(f"Abort {len(found)} transactions on {where}?", yes=yes)
            return session.output.results([_abort_on_partition(admin, each) for each in found])
    rows: list[Row] = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "producer_id": each.producer.producer_id,
            "producer_epoch": each.producer.producer_epoch,
            "coordinator_epoch": each.producer.coordinator_epoch,
            "start_offset": each.producer.transaction_start_offset,
            "last_timestamp": each.producer.last_timestamp,
        }
        for each in found
    ]
    columns = [
        Column("topic", "TOPIC"),
        Column("partition", "PARTITION"),
        Column("producer_id", "PRODUCER"),
        Column("producer_epoch", "EPOCH"),
        Column("coordinator_epoch", "COORDINATOR EPOCH"),
        Column("start_offset", "START"),
        Column("last_timestamp", "LAST RECORD"),
    ]
    session.output.table(columns, rows, empty="No hanging transactions.")
    return FAILED if rows else 0


def _abort_on_partition(admin: "Admin", transaction: "OpenTransaction") -> Done:
    from kaspar.client.admin.transactions import AbortTransactionSpec, abort_transaction

    where, producer = transaction.partition, transaction.producer
    what = f"producer {producer.producer_id} on {where}"
    keys = {"producer_id": producer.producer_id, "topic": where.topic, "partition": where.partition}
    try:
        abort_transaction(admin, AbortTransactionSpec.of(where, producer))
    except Refused as refused:
        return Done(what, keys, problem=refused)
    return Done(what, keys, "aborted")


@command.command("abort", epilog=_EXAMPLES)
@click.argument("transactional_ids", nargs=-1, required=True, metavar="ID...")
@yes_option
@common_options
def abort(session: Session, transactional_ids: Sequence[str], yes: bool) -> int:
    """Abort the open transactions of these ids. Their producers are fenced and must be restarted."""
    from kaspar.client.admin.transactions import fence_producer

    results = []
    with session.admin() as admin:
        names = [each.transactional_id for each in _existing(admin, transactional_ids)]
        confirm(f"Abort the open transaction of {', '.join(names)} and fence the producer?", yes=yes)
        for name in names:
            try:
                fence_producer(admin, name)
                results.append(Done(name, {"transactional_id": name}, "aborted"))
            except Refused as refused:
                results.append(Done(name, {"transactional_id": name}, problem=refused))
    return session.output.results(results)
