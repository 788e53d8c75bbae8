"""`kaspar spark transactions`: what exactly-once queries have left open on the brokers, and how to end it."""

import argparse
import secrets
import time
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError

if TYPE_CHECKING:
    from kaspar.client import Client
    from kaspar.spark.exactly_once.decision_log import DecisionLog
    from kaspar.spark.exactly_once.leftovers import QueryLeftOvers


def add_transactions(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subcommands.add_parser(
        "transactions",
        help="show and end transactions that exactly-once queries have left open",
        description="Show the open transactions of exactly-once queries, and decisions that are not carried out yet. "
        "Running queries have some, too. A query that runs again ends what it left by itself.",
        epilog="With --end, what was decided is committed, all else is aborted, and a run of the query that is still "
        "there stops.",
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="some brokers of the cluster")
    parser.add_argument("--query", action="append", metavar="ID", help="only this one (may be given several times)")
    parser.add_argument(
        "--finish", action="store_true", help="commit what was decided, of all queries, and stop none that is running"
    )
    parser.add_argument("--end", action="store_true", help="end them; --query or --all says whose")
    parser.add_argument("--all", action="store_true", help="with --end: those of all queries that have any")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="with --end: go on where a decided transaction was aborted, without what it had written, and where the "
        "program was changed to write more than was published of its last batch",
    )
    parser.add_argument(
        "--release",
        action="store_true",
        help="with --end and --query: let another streaming query have the name, and count batches anew",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from kaspar.client import Client
    from kaspar.spark.exactly_once.decision_log import DecisionLog
    from kaspar.spark.exactly_once.leftovers import find_left_overs, is_known

    if arguments.finish and (arguments.query or arguments.end):
        raise KasparError("--finish is for all queries, and goes without --query and --end")
    if (arguments.all or arguments.accept_loss or arguments.release) and not arguments.end:
        raise KasparError("--all, --accept-loss and --release go with --end")
    if arguments.release and not arguments.query:
        raise KasparError("--release needs --query ID: which name is to be free for another query")
    if arguments.end and not (arguments.query or arguments.all):
        raise KasparError("--end needs --query ID, or --all: a run of the query that is still there will stop")
    try:
        client = Client(arguments.bootstrap_server)
    except ValueError:
        raise KasparError(f"{arguments.bootstrap_server} is not a list of host:port") from None
    try:
        with client:
            log = DecisionLog(client)
            found = find_left_overs(client, log)
            wanted = [each for each in found if not arguments.query or each.query in arguments.query]
            for each in wanted:
                _show(each)
            if arguments.finish:
                return _finish(client, log)
            named = set(arguments.query or ())
            queries = {each.query for each in wanted} | named
            unknown = sorted(query for query in named if not is_known(client, log, query))
            if unknown:
                raise KasparError(f"no query is known by the name {', '.join(unknown)}: nothing was done")
            if arguments.end:
                return _end(client, log, sorted(queries), accept_loss=arguments.accept_loss, releases=arguments.release)
            if not wanted:
                print(f"Nothing is left by {', '.join(sorted(named))}." if named else "No query has left anything.")
    except OSError as problem:
        raise KasparError(f"{arguments.bootstrap_server} cannot be reached: {problem}") from problem
    return 0


def _show(left: "QueryLeftOvers") -> None:
    state = left.state
    print(f"query {left.query}, run {state.owner}")
    if state.pending is not None:
        print(f"  batch {state.pending.batch.batch_id} is decided and not complete")
    elif state.last is not None:
        print(f"  batch {state.last.batch.batch_id} is published")
    now_ms = time.time_ns() // 1_000_000
    for each in left.open_transactions:
        fate = "to be committed" if each.transactional_id in left.decided else "not decided"
        topics = ", ".join(sorted({partition.topic for partition in each.partitions}))
        print(f"  {each.transactional_id}  {fate}, open for {(now_ms - each.start_ms) / 1000:.0f} s: {topics}")


def _finish(client: "Client", log: "DecisionLog") -> int:
    from kaspar.spark.exactly_once.coordinator import BrokerCoordinator
    from kaspar.spark.exactly_once.leftovers import finish_decided
    from kaspar.spark.exactly_once.parties import Parties

    finished = finish_decided(Parties(log, BrokerCoordinator(client), secrets.token_hex(6)))
    for batch, problem in finished.items():
        print(f"{batch}: {problem or 'committed'}")
    if not finished:
        print("All that was decided is committed.")
    return int(any(problem is not None for problem in finished.values()))


def _end(client: "Client", log: "DecisionLog", queries: list[str], *, accept_loss: bool, releases: bool) -> int:
    from kaspar.spark.exactly_once.coordinator import BrokerCoordinator
    from kaspar.spark.exactly_once.leftovers import end_left_overs
    from kaspar.spark.exactly_once.ownership import release
    from kaspar.spark.exactly_once.parties import Parties

    parties = Parties(log, BrokerCoordinator(client), secrets.token_hex(6))
    is_clean = True
    for query in queries:
        ended = end_left_overs(parties, query, accept_loss=accept_loss)
        if ended.loss is not None:
            print(f"accepted: {ended.loss}")
        print(f"query {query}: {ended.committed} transactions committed, {ended.aborted} aborted")
        if ended.still_open:
            is_clean = False
            print(f"query {query}: open again, so a run of it is still there: {', '.join(sorted(ended.still_open))}")
        if releases:
            release(parties, query)
            print(f"query {query}: released; the next stream of that name counts its batches anew")
    if not queries:
        print("There is nothing to end.")
    return int(not is_clean)
