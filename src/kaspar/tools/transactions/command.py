"""The command: its options, and the subcommands about one transaction or one partition."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kaspar import __version__
from kaspar.base.errors import KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.producers import ProducerState, describe_producers
from kaspar.client.admin.session import Admin
from kaspar.client.admin.transactions import (
    AbortTransactionSpec,
    abort_transaction,
    describe_transactions,
    fence_producer,
    list_transactions,
)
from kaspar.tools.argparse4j import Argparse4jOptions, to_integer, to_long, to_short
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, open_admin, run
from kaspar.tools.plain_tables import plain_table
from kaspar.tools.transactions.hanging import failure, find_hanging

_HELP_CODE: Final = 1


def command_options() -> Argparse4jOptions:
    options = Argparse4jOptions(
        "kafka-transactions",
        help_code=_HELP_CODE,
        description="List and describe transactions and the producers of partitions; find and abort transactions that "
        "hang.",
        epilog="Example: kafka-transactions --bootstrap-server localhost:9092 list",
    )
    options.add_argument("-v", "--version", action="version", version=__version__, help="print the version")
    add_command_config(options)
    options.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    commands = options.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser(
        "list",
        help="list the transactions of all coordinators",
        description="List the transactions of all coordinators, with their producers and states.",
    )
    listing.add_argument(
        "--duration-filter",
        type=to_long,
        default=-1,
        metavar="MS",
        help="only those that have been open for longer; all if it is negative (the default)",
    )
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only those whose id matches")

    describe = commands.add_parser(
        "describe",
        help="show the state of a transactional id",
        description="Show the state of a transactional id, and the partitions of its open transaction.",
    )
    describe.add_argument("--transactional-id", required=True, metavar="ID", help="the transactional.id of a producer")

    producers = commands.add_parser(
        "describe-producers",
        help="show the producers that a partition knows",
        description="Show the producers that a partition knows, and where their open transactions start.",
    )
    producers.add_argument("--broker-id", type=to_integer, metavar="ID", help="ask this replica (default: the leader)")

    abort = commands.add_parser(
        "abort",
        help="abort a transaction that hangs on a partition",
        description="Abort a transaction that hangs on a partition. Say which: by its start, or by its producer.",
    )
    for command in (producers, abort):
        command.add_argument("--topic", required=True, help="the topic")
        command.add_argument("--partition", type=to_integer, required=True, help="the partition of the topic")
    abort.add_argument(
        "--start-offset", type=to_long, metavar="OFFSET", help="where the transaction starts, as find-hanging shows it"
    )
    abort.add_argument(
        "--producer-id", type=to_long, metavar="ID", help="with the two below: for brokers before version 3.0"
    )
    abort.add_argument("--producer-epoch", type=to_short, metavar="EPOCH", help="the epoch of the producer")
    abort.add_argument(
        "--coordinator-epoch", type=to_integer, metavar="EPOCH", help="the epoch of its coordinator, or -1"
    )

    hanging = commands.add_parser(
        "find-hanging",
        help="find transactions that are open on a partition, but not for their coordinator",
        description="Find transactions that are open on a partition, but not for their coordinator: consumers wait "
        "behind them until they are aborted.",
    )
    hanging.add_argument("--broker-id", type=to_integer, metavar="ID", help="search the replicas of this broker")
    hanging.add_argument(
        "--max-transaction-timeout",
        type=to_integer,
        default=15,
        metavar="MINUTES",
        help="only those without a record for longer (default: 15)",
    )
    hanging.add_argument("--topic", help="search only this topic; needed with --partition")
    hanging.add_argument("--partition", type=to_integer, help="search only this partition of the topic")

    terminate = commands.add_parser(
        "forceTerminateTransaction",
        help="abort the open transaction of a transactional id, and fence its producer",
        description="Abort the open transaction of a transactional id, and fence its producer.",
    )
    terminate.add_argument("--transactionalId", required=True, metavar="ID", help="the transactional.id of a producer")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = command_options().parse_args(argv)
    return run(lambda: _run(options), _report)


def _report(problem: KasparError) -> None:
    print(problem, file=sys.stderr)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Says what failed."""
    try:
        yield
    except Refused as refused:
        raise failure(what, refused) from None


def _run(options: argparse.Namespace) -> None:
    with open_admin(options.bootstrap_server, options.command_config, client_id="transactions-tool") as admin:
        match options.command:
            case "list":
                _list(admin, options)
            case "describe":
                _describe(admin, options.transactional_id)
            case "describe-producers":
                _describe_producers(admin, options)
            case "abort":
                _abort(admin, options)
            case "find-hanging":
                _find_hanging(admin, options)
            case _:
                with _failing(f"Failed to force terminate transactionalId `{options.transactionalId}`"):
                    fence_producer(admin, options.transactionalId)


def _print(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for line in plain_table(header, rows):
        print(line)


def _shown(value: int | None) -> object:
    return "None" if value is None else value


# --- transactions -----------------------------------------------------------------------------------------------------


def _list(admin: Admin, options: argparse.Namespace) -> None:
    with _failing("Failed to list transactions"):
        found = list_transactions(
            admin,
            duration_filter_ms=options.duration_filter,
            transactional_id_pattern=options.transactional_id_pattern,
        )
    rows = [(each.transactional_id, each.coordinator_id, each.producer_id, each.state) for each in found]
    _print(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def _describe(admin: Admin, transactional_id: str) -> None:
    with _failing(f"Failed to describe transaction state of transactional-id `{transactional_id}`"):
        found = describe_transactions(admin, [transactional_id])[transactional_id]
        if isinstance(found, Refused):
            raise found
    start = found.start_time_ms
    columns = {
        "CoordinatorId": found.coordinator_id,
        "TransactionalId": transactional_id,
        "ProducerId": found.producer.producer_id,
        "ProducerEpoch": found.producer.producer_epoch,
        "TransactionState": found.state,
        "TransactionTimeoutMs": found.timeout_ms,
        "CurrentTransactionStartTimeMs": _shown(start),
        "TransactionDurationMs": _shown(None if start is None else time.time_ns() // 1_000_000 - start),
        "TopicPartitions": ",".join(map(str, found.partitions)),
    }
    _print(list(columns), [list(columns.values())])


# --- producers --------------------------------------------------------------------------------------------------------


def _describe_producers(admin: Admin, options: argparse.Namespace) -> None:
    where = TopicPartition(options.topic, options.partition)
    on = "leader" if options.broker_id is None else f"broker {options.broker_id}"
    with _failing(f"Failed to describe producers for partition {where} on {on}"):
        producers = _producers(admin, where, options.broker_id)
    header = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp")
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            -1 if each.coordinator_epoch is None else each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            _shown(each.transaction_start_offset),
        )
        for each in producers
    ]
    _print((*header, "CurrentTransactionStartOffset"), rows)


def _producers(admin: Admin, where: TopicPartition, broker_id: int | None = None) -> tuple[ProducerState, ...]:
    found = describe_producers(admin, [where], broker_id=broker_id)[where]
    if isinstance(found, Refused):
        raise found
    return found


# --- ending transactions ----------------------------------------------------------------------------------------------


def _abort(admin: Admin, options: argparse.Namespace) -> None:
    spec = _to_abort(admin, options)
    text = (
        f"AbortTransactionSpec(topicPartition={spec.partition}, producerId={spec.producer_id}, "
        f"producerEpoch={spec.producer_epoch}, coordinatorEpoch={spec.coordinator_epoch})"
    )
    with _failing(f"Failed to abort transaction {text}"):
        abort_transaction(admin, spec)


def _to_abort(admin: Admin, options: argparse.Namespace) -> AbortTransactionSpec:
    where = TopicPartition(options.topic, options.partition)
    if options.start_offset is not None:
        with _failing(f"Failed to validate producer state for partition {where}"):
            producers = _producers(admin, where)
        for each in producers:
            if each.transaction_start_offset == options.start_offset:
                return AbortTransactionSpec(where, each.producer_id, each.producer_epoch, each.coordinator_epoch or 0)
        raise CommandFailed(
            f"Could not find any open transactions starting at offset {options.start_offset} on partition {where}"
        )
    if options.producer_id is None:
        raise CommandFailed(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    for name in ("producer-epoch", "coordinator-epoch"):
        if getattr(options, name.replace("-", "_")) is None:
            raise CommandFailed(f"Missing required argument --{name}")
    # A producer whose first transaction hangs has no coordinator epoch yet: 0 is not above any leader's.
    coordinator_epoch = max(0, options.coordinator_epoch)
    return AbortTransactionSpec(where, options.producer_id, options.producer_epoch, coordinator_epoch)


def _find_hanging(admin: Admin, options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise CommandFailed(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.partition is not None and options.topic is None:
        raise CommandFailed("The --partition argument requires --topic to be provided")
    now_ms = time.time_ns() // 1_000_000
    found = find_hanging(
        admin,
        topic=options.topic,
        partition=options.partition,
        broker_id=options.broker_id,
        silent_since_ms=now_ms - options.max_transaction_timeout * 60_000,
    )
    columns = ("ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp", "Duration(min)")
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            -1 if each.producer.coordinator_epoch is None else each.producer.coordinator_epoch,
            each.producer.transaction_start_offset,
            each.producer.last_timestamp,
            (now_ms - each.producer.last_timestamp) // 60_000,
        )
        for each in found
    ]
    _print(("Topic", "Partition", *columns), rows)


if __name__ == "__main__":
    sys.exit(main())
