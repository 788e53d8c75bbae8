"""The options of kafka-transactions."""

import argparse
from typing import Final

from kaspar import __version__
from kaspar.tools.argparse4j import Argparse4jOptions, to_integer, to_long, to_short
from kaspar.tools.client_config import add_command_config

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
    _add_list(commands)
    _add_describe(commands)
    _add_describe_producers(commands)
    _add_abort(commands)
    _add_find_hanging(commands)
    _add_force_terminate(commands)
    return options


def _add_list(commands: "argparse._SubParsersAction[Argparse4jOptions]") -> None:
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


def _add_describe(commands: "argparse._SubParsersAction[Argparse4jOptions]") -> None:
    describe = commands.add_parser(
        "describe",
        help="show the state of a transactional id",
        description="Show the state of a transactional id, and the partitions of its open transaction.",
    )
    describe.add_argument("--transactional-id", required=True, metavar="ID", help="the transactional.id of a producer")


def _add_describe_producers(commands: "argparse._SubParsersAction[Argparse4jOptions]") -> None:
    producers = commands.add_parser(
        "describe-producers",
        help="show the producers that a partition knows",
        description="Show the producers that a partition knows, and where their open transactions start.",
    )
    producers.add_argument("--broker-id", type=to_integer, metavar="ID", help="ask this replica (default: the leader)")
    _add_partition(producers)


def _add_partition(command: Argparse4jOptions) -> None:
    command.add_argument("--topic", required=True, help="the topic")
    command.add_argument("--partition", type=to_integer, required=True, help="the partition of the topic")


def _add_abort(commands: "argparse._SubParsersAction[Argparse4jOptions]") -> None:
    abort = commands.add_parser(
        "abort",
        help="abort a transaction that hangs on a partition",
        description="Abort a transaction that hangs on a partition. Say which: by its start, or by its producer.",
    )
    _add_partition(abort)
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


def _add_find_hanging(commands: "argparse._SubParsersAction[Argparse4jOptions]") -> None:
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


def _add_force_terminate(commands: "argparse._SubParsersAction[Argparse4jOptions]") -> None:
    terminate = commands.add_parser(
        "forceTerminateTransaction",
        help="abort the open transaction of a transactional id, and fence its producer",
        description="Abort the open transaction of a transactional id, and fence its producer.",
    )
    terminate.add_argument("--transactionalId", required=True, metavar="ID", help="the transactional.id of a producer")
