"""`kaspar spark transactions`: shows and ends transactions that exactly-once queries have left open."""

import argparse
import secrets
import time
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError
from kaspar.tools.client_config import add_command_config

if TYPE_CHECKING:
    from kaspar.client import Client
    from kaspar.exactly_once.decision_log import DecisionLog
    from kaspar.exactly_once.leftovers import QueryLeftovers


def add_transactions(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subcommands.add_parser(
        "transactions",
        help="show and end transactions that exactly-once queries have left open",
        description="Show the open transactions of exactly-once queries, and batches that are decided but not yet "
        "committed. Running queries have some, too. A query that is restarted ends its own.",
        epilog="--end commits what was decided and aborts the rest. A query that is still running stops. "
        "Example: kaspar spark transactions --bootstrap-server localhost:9092 --end --query orders",
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="one or more brokers")
    add_command_config(parser)
    parser.add_argument("--query", action="append", metavar="ID", help="only this query; may be repeated")
    parser.add_argument(
        "--finish", action="store_true", help="commit what was decided, for all queries; running queries go on"
    )
    parser.add_argument(
        "--end", action="store_true", help="end the transactions of the queries that --query or --all selects"
    )
    parser.add_argument("--all", action="store_true", help="with --end: of all queries")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="with --end: continue although records are lost, because a decided transaction was aborted, or because "
        "the changed program writes more in its last batch than was published",
    )
    parser.add_argument(
        "--release",
        action="store_true",
        help="with --end and --query: free the name for another streaming query, which counts batches from 0",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from kaspar.client.core import REQUEST_TIMEOUT_S
    from kaspar.exactly_once.decision_log import DecisionLog
    from kaspar.exactly_once.leftovers import find_leftovers, is_known
    from kaspar.tools.command_line import open_client

    if arguments.finish and (arguments.query or arguments.end):
        raise KasparError("--finish is for all queries and cannot be combined with --query or --end")
    if (arguments.all or arguments.accept_loss or arguments.release) and not arguments.end:
        raise KasparError("--all, --accept-loss and --release require --end")
    if arguments.release and not arguments.query:
        raise KasparError("--release requires --query ID, the name to be freed")
    if arguments.end and not (arguments.query or arguments.all):
        raise KasparError("--end requires --query ID or --all; queries that are still running will stop")
    servers = arguments.bootstrap_server
    try:
        with open_client(servers, arguments.command_config, client_id="kaspar", timeout_s=REQUEST_TIMEOUT_S) as client:
            log = DecisionLog(client)
            found = find_leftovers(client, log)
            wanted = [each for each in found if not arguments.query or each.query in arguments.query]
            for each in wanted:
                _show(each)
            if arguments.finish:
                return _finish(client, log)
            named = set(arguments.query or ())
            queries = {each.query for each in wanted} | named
            unknown = sorted(query for query in named if not is_known(client, log, query))
            if unknown:
                raise KasparError(f"there is no query {', '.join(unknown)}; nothing was changed")
            if arguments.end:
                return _end(client, log, sorted(queries), accept_loss=arguments.accept_loss, releases=arguments.release)
            if not wanted:
                print(f"{', '.join(sorted(named))} left nothing open." if named else "No query left anything open.")
    except OSError as problem:
        raise KasparError(f"{servers} cannot be reached: {problem}") from problem
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
        print("Everything that was decided is committed.")
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
            print(f"query {query}: still running, it has new transactions: {', '.join(sorted(ended.still_open))}")
        if releases:
            release(participants, query)
            print(f"query {query}: released; the next stream of that name counts its batches from 0")
    if not queries:
        print("Nothing to end.")
    return int(not is_clean)
