"""The command, and its subcommands for a single transaction or partition."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kaspar.base.errors import KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.producers import ProducerState, describe_producers
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.transactions import (
    FIRST_COORDINATOR_EPOCH,
    AbortTransactionSpec,
    abort_transaction,
    describe_transactions,
    fence_producer,
    list_transactions,
)
from kaspar.tools.command_line import CommandFailed, open_admin, run
from kaspar.tools.plain_tables import plain_table
from kaspar.tools.transactions.hanging import failure, find_hanging
from kaspar.tools.transactions.options import command_options

__all__ = ["command_options", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    options = command_options().parse_args(argv)
    return run(lambda: _run(options), _report)


def _report(problem: KasparError) -> None:
    print(problem, file=sys.stderr)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Adds to an error what has failed."""
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
        found = accepted(describe_transactions(admin, [transactional_id])[transactional_id])
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
    return accepted(describe_producers(admin, [where], broker_id=broker_id)[where])


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
                return AbortTransactionSpec.of(where, each)
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
    epochs = options.producer_epoch, max(FIRST_COORDINATOR_EPOCH, options.coordinator_epoch)
    return AbortTransactionSpec(where, options.producer_id, *epochs)


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
