"""`kaspar spark transactions`: shows and ends transactions that exactly-once queries have left open."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Command
from kaspar.cli.session import Session, cluster_options

if TYPE_CHECKING:
    from kaspar.client import Client
    from kaspar.exactly_once.decision_log import DecisionLog
    from kaspar.exactly_once.leftovers import QueryLeftovers


@dataclass(frozen=True, slots=True)
class TransactionsOptions:
    query: Sequence[str]
    finish: bool
    end: bool
    all: bool
    accept_loss: bool
    release: bool


@click.command(
    "transactions",
    cls=Command,
    epilog="--end commits decided transactions and aborts the rest. A query that is still running is stopped.\n"
    "Example: kaspar spark transactions --bootstrap-server localhost:9092 --end --query orders",
)
@cluster_options
@click.option("--query", multiple=True, metavar="ID", help="Only this query; may be repeated.")
@click.option("--finish", is_flag=True, help="Commit decided transactions of all queries; running queries continue.")
@click.option("--end", is_flag=True, help="End the transactions of the queries that --query or --all selects.")
@click.option("--all", is_flag=True, help="With --end: of all queries.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="With --end: continue even if records are lost, because a decided transaction was aborted or because the "
    "changed program writes more in its last batch than was published.",
)
@click.option(
    "--release",
    is_flag=True,
    help="With --end and --query: free the name for another streaming query, which counts batches from 0.",
)
def transactions(session: Session, /, **given: Any) -> int:
    """Show the open transactions of exactly-once queries, and batches that are decided but not yet committed. Running
    queries have some too. A restarted query ends its own."""
    options = TransactionsOptions(**given)
    _check(options)
    return _run(session, options)


def _check(options: TransactionsOptions) -> None:
    if options.finish and (options.query or options.end):
        raise KasparError("--finish applies to all queries and cannot be combined with --query or --end")
    if (options.all or options.accept_loss or options.release) and not options.end:
        raise KasparError("--all, --accept-loss and --release require --end")
    if options.release and not options.query:
        raise KasparError("--release requires --query ID, the name to be freed")
    if options.end and not (options.query or options.all):
        raise KasparError("--end requires --query ID or --all; queries that are still running will stop")


def _run(session: Session, options: TransactionsOptions) -> int:
    from kaspar.exactly_once.decision_log import DecisionLog
    from kaspar.exactly_once.leftovers import find_leftovers, is_known

    with session.admin() as admin:
        client = admin.client
        log = DecisionLog(client)
        found = find_leftovers(client, log)
        wanted = [each for each in found if not options.query or each.query in options.query]
        for each in wanted:
            _show(each)
        if options.finish:
            return _finish(client, log)
        named = set(options.query)
        queries = {each.query for each in wanted} | named
        unknown = sorted(query for query in named if not is_known(client, log, query))
        if unknown:
            raise KasparError(f"there is no query {', '.join(unknown)}; nothing was changed")
        if options.end:
            return _end(client, log, sorted(queries), accept_loss=options.accept_loss, releases=options.release)
        if not wanted:
            print(
                f"No open transactions of {', '.join(sorted(named))}." if named else "No query has open transactions."
            )
    return 0


def _show(left: "QueryLeftovers") -> None:
    state = left.state
    print(f"query {left.query}, run {state.owner}")
    if state.pending is not None:
        print(f"  batch {state.pending.batch.batch_id} is decided but not complete")
    elif state.last is not None:
        print(f"  batch {state.last.batch.batch_id} is published")
    now_ms = time.time_ns() // 1_000_000
    for each in left.open_transactions:
        outcome = "to be committed" if each.transactional_id in left.decided else "not decided"
        topics = ", ".join(sorted({partition.topic for partition in each.partitions}))
        print(f"  {each.transactional_id}  {outcome}, open for {(now_ms - each.start_ms) / 1000:.0f} s: {topics}")


def _finish(client: "Client", log: "DecisionLog") -> int:
    from kaspar.exactly_once.coordinator import BrokerCoordinator
    from kaspar.exactly_once.leftovers import finish_decided
    from kaspar.exactly_once.participants import Participants

    finished = finish_decided(Participants(log, BrokerCoordinator(client), secrets.token_hex(6)))
    for batch, problem in finished.items():
        print(f"{batch}: {problem or 'committed'}")
    if not finished:
        print("All decided transactions are committed.")
    return int(any(problem is not None for problem in finished.values()))


def _end(client: "Client", log: "DecisionLog", queries: list[str], *, accept_loss: bool, releases: bool) -> int:
    from kaspar.exactly_once.coordinator import BrokerCoordinator
    from kaspar.exactly_once.leftovers import end_leftovers
    from kaspar.exactly_once.ownership import release
    from kaspar.exactly_once.participants import Participants

    participants = Participants(log, BrokerCoordinator(client), secrets.token_hex(6))
    is_clean = True
    for query in queries:
        ended = end_leftovers(participants, query, accept_loss=accept_loss)
        if ended.loss is not None:
            print(f"accepted: {ended.loss}")
        print(f"query {query}: {ended.committed} transactions committed, {ended.aborted} aborted")
        if ended.still_open:
            is_clean = False
            print(f"query {query}: still running; it has new transactions: {', '.join(sorted(ended.still_open))}")
        if releases:
            release(participants, query)
            print(f"query {query}: released; the next stream of that name counts its batches from 0")
    if not queries:
        print("Nothing to end.")
    return int(not is_clean)
