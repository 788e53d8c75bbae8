"""The command `kaspar`."""

import argparse
import sys
from collections.abc import Sequence

from kaspar import __version__
from kaspar.cli.certs import add_certs, run_certs
from kaspar.cli.controller import add_controller, run_controller
from kaspar.cli.metadata import add_metadata, run_metadata
from kaspar.cli.pipeline import add_pipeline, run_pipeline
from kaspar.cli.pipeline_run import split_arguments
from kaspar.cli.spark import add_spark, run_spark
from kaspar.cli.status import add_status, run_status
from kaspar.cli.stop import add_stop, run_stop
from kaspar.cli.up import add_up, run_up
from kaspar.cli.zookeeper import add_zookeeper, run_zookeeper
from kaspar.tools import server_start
from kaspar.tools.client_config import add_command_config


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="kaspar",
        description="A Kafka-compatible commit log. Every Kafka client works with it unchanged.",
        epilog="Try 'kaspar demo' to see it at work, or 'kaspar up' and then any Kafka client on localhost:9092.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser(
        "broker",
        parents=[server_start.parser("kaspar broker", file_required=False)],
        add_help=False,
        help="run a broker",
        description="Run a broker until SIGTERM or Ctrl-C. Without a settings file it listens on localhost:9092.",
    )
    add_up(commands)
    add_status(commands)
    add_stop(commands)
    demo = commands.add_parser(
        "demo",
        help="start a broker, events and two streams programs, with a live view",
        description="Start a broker, produce trades and clicks, process them with two streams programs on Spark, and "
        "show it live. All data is temporary. Needs kaspar[tools]; without kaspar[streams] or Java a consumer reads "
        "the events.",
        epilog="Example: kaspar demo --seconds 30 --rate 5000",
    )
    demo.add_argument(
        "--seconds",
        type=float,
        help="end after this time, counted from when everything is up (default: run until Ctrl-C)",
    )
    demo.add_argument("--rate", type=int, default=500, help="events per second to produce (default: %(default)s)")
    demo.add_argument("--without-spark", action="store_true", help="read the events with a consumer instead of Spark")
    _add_compact(commands)
    add_spark(commands)
    add_pipeline(commands)
    add_zookeeper(commands)
    add_metadata(commands)
    add_certs(commands)
    add_controller(commands)
    commands.add_parser("version", help="show the version, and whether the core is compiled")
    own_arguments, program_arguments = split_arguments(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(own_arguments)
    if arguments.command == "broker":
        return server_start.run(arguments)
    if arguments.command == "up":
        return run_up(arguments)
    if arguments.command == "status":
        return run_status(arguments)
    if arguments.command == "stop":
        return run_stop(arguments)
    if arguments.command == "demo":
        from kaspar.demo.run import run_demo

        return run_demo(seconds=arguments.seconds, rate=arguments.rate, with_spark=not arguments.without_spark)
    if arguments.command == "compact":
        from kaspar.cli.compact import run_compact

        return run_compact(
            arguments.topic,
            servers=arguments.bootstrap_server,
            only=arguments.partitions,
            timeout_s=arguments.timeout,
            config_file=arguments.command_config,
        )
    if arguments.command == "spark":
        return run_spark(arguments)
    if arguments.command == "pipeline":
        arguments.program_arguments = program_arguments
        return run_pipeline(arguments)
    if arguments.command == "zookeeper":
        return run_zookeeper(arguments)
    if arguments.command == "metadata":
        return run_metadata(arguments)
    if arguments.command == "certs":
        return run_certs(arguments)
    if arguments.command == "controller":
        return run_controller(arguments)
    if arguments.command == "version":
        return _version()
    parser.print_help()
    return 2


def _add_compact(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compact = commands.add_parser(
        "compact",
        help="compact a topic now",
        description="Compact a topic now, whatever its dirty ratio: only the last record of each key is kept. Records "
        "that min.compaction.lag.ms or an open transaction protects are kept too, and tombstones until "
        "delete.retention.ms has passed. Shows the size before and after. Ctrl-C ends the command, not the compaction.",
        epilog="Example: kaspar compact salaries --bootstrap-server localhost:9092 --partitions 0,1",
    )
    compact.add_argument("topic", metavar="TOPIC", help="a topic whose cleanup.policy contains compact")
    compact.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT",
        help="one or more brokers of the cluster, comma-separated (default: %(default)s)",
    )
    add_command_config(compact)
    compact.add_argument(
        "--partitions", type=_numbers, metavar="N,N", help="compact only these partitions (default: all)"
    )
    compact.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="stop waiting after this time (default: no limit)"
    )


def _numbers(text: str) -> list[int]:
    return sorted({int(part) for part in text.split(",")})


def _version() -> int:
    from kaspar.base import compiled

    print(f"kaspar {__version__}, Python {sys.version.split()[0]}")
    for module in compiled.COMPILED_MODULES:
        form = (
            "compiled"
            if compiled.load(module).__name__ != module
            else "interpreted (slower: there was no C compiler at install)"
        )
        print(f"  {module}: {form}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
