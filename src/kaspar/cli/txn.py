"""`kaspar txn`: transactions, and those that block readers."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import ErrorCode, Refused
from kaspar.cli.asking import confirm, yes_option
from kaspar.cli.command import Group
from kaspar.cli.failures import NotFound
from kaspar.cli.output import Column, Done, Row
from kaspar.cli.session import Session, common_options

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.client.admin.transactions import TransactionDescription

_EXAMPLES: Final = """\
examples:
  kaspar txn list --open
  kaspar txn describe payments-1
  kaspar txn abort payments-1                 also fences its producer
  kaspar txn hanging                          transactions that nobody will end
"""
_OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


@click.group("txn", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show transactions, and end those that block readers of committed records."""


@command.command("list", epilog=_EXAMPLES)
@click.option("--open", "is_open", is_flag=True, help="Only those that are open.")
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
    """Show the state of transactions, since when they are open, and what they have written to."""
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
                raise NotFound(f"there is no transactional id {name}: 'kaspar txn list' shows those that exist")
            raise each
        existing.append(each)
    return existing


@command.command("abort", epilog=_EXAMPLES)
@click.argument("transactional_ids", nargs=-1, required=True, metavar="ID...")
@yes_option
@common_options
def abort(session: Session, transactional_ids: Sequence[str], yes: bool) -> int:
    """Abort the open transactions of these ids. Their producers are fenced: they fail, and must start anew."""
    from kaspar.client.admin.transactions import fence_producer

    results = []
    with session.admin() as admin:
        names = [each.transactional_id for each in _existing(admin, transactional_ids)]
        confirm(f"Abort what {', '.join(names)} has open, and fence the producer?", yes=yes)
        for name in names:
            try:
                fence_producer(admin, name)
                results.append(Done(name, "aborted"))
            except Refused as refused:
                results.append(Done(name, problem=refused))
    return session.output.results(results)
