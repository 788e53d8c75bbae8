"""`kaspar`: one way in for people."""

import argparse
import sys
from collections.abc import Sequence

from kaspar import __version__
from kaspar.cli.spark import add_spark, run_spark
from kaspar.tools import server_start


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="kaspar",
        description="A Kafka-compatible commit log. Every Kafka client works with it unchanged.",
        epilog="Try 'kaspar demo' to see it at work, or 'kaspar broker' and then any Kafka client on localhost:9092.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser(
        "broker",
        parents=[server_start.parser("kaspar broker", file_required=False)],
        add_help=False,
        help="run a broker",
        description="Run a broker until it is told to stop. Without a file: one broker on localhost:9092.",
    )
    demo = commands.add_parser("demo", help="start a broker, events and a Spark query, with a live view")
    demo.add_argument("--seconds", type=float, help="end by itself so many seconds after all of it is up")
    demo.add_argument("--rate", type=int, default=2_000, help="records a second to produce (default: %(default)s)")
    demo.add_argument("--without-spark", action="store_true", help="read the events with a consumer, without Spark")
    _add_compact(commands)
    add_spark(commands)
    commands.add_parser("version", help="say which version this is, and whether its core is compiled")
    arguments = parser.parse_args(argv)
    if arguments.command == "broker":
        return server_start.run(arguments)
    if arguments.command == "demo":
        from kaspar.cli.demo import run_demo

        return run_demo(seconds=arguments.seconds, rate=arguments.rate, with_spark=not arguments.without_spark)
    if arguments.command == "compact":
        from kaspar.cli.compact import run_compact

        return run_compact(
            arguments.topic, servers=arguments.bootstrap_server, only=arguments.partitions, timeout_s=arguments.timeout
        )
    if arguments.command == "spark":
        return run_spark(arguments)
    if arguments.command == "version":
        return _version()
    parser.print_help()
    return 2


def _add_compact(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compact = commands.add_parser(
        "compact",
        help="compact a topic now",
        description="Compact a topic now, whatever its dirty ratio, and show what that brings: of every key, all "
        "records but the last are removed. What min.compaction.lag.ms or an open transaction protects stays as it is, "
        "and so do tombstones until delete.retention.ms is over. Ctrl-C ends the command, not the compaction.",
        epilog="Example: kaspar compact salaries --bootstrap-server localhost:9092 --partitions 0,1",
    )
    compact.add_argument("topic", metavar="TOPIC", help="a topic whose cleanup.policy contains compact")
    compact.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT",
        help="some brokers of the cluster, comma-separated (default: %(default)s)",
    )
    compact.add_argument("--partitions", type=_numbers, help="only these, comma-separated (default: all)")
    compact.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="wait no longer than this (default: no limit)"
    )


def _numbers(text: str) -> list[int]:
    return sorted({int(part) for part in text.split(",")})


def _version() -> int:
    from kaspar.base import compiled

    print(f"kaspar {__version__}, Python {sys.version.split()[0]}")
    for module in compiled.COMPILED_MODULES:
        form = (
            "compiled" if compiled.load(module).__name__ != module else "interpreted (slower: no C compiler at install)"
        )
        print(f"  {module}: {form}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
