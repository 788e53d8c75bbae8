"""`kaspar spark`: a standalone Spark cluster on this machine, and open transactions of exactly-once queries."""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from kaspar.base.errors import KasparError
from kaspar.cli.spark_transactions import add_transactions

Run = Callable[[argparse.Namespace], int]


def add_spark(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The parser of `kaspar spark`. Every subcommand sets `run`, which `run_spark` calls."""
    spark = commands.add_parser(
        "spark",
        help="run a Spark cluster on this machine; end transactions that queries left open",
        description="Run a standalone Spark cluster on this machine, from the pip package, and look after transactions "
        "of exactly-once queries.",
        epilog="Example: kaspar spark start --workers 2; programs use it with "
        "kaspar.spark.session(master='spark://127.0.0.1:7077').",
    )
    subcommands = spark.add_subparsers(dest="spark_command", metavar="COMMAND", required=True)
    _add_start(subcommands)
    add_transactions(subcommands)
    status = subcommands.add_parser("status", help="show the cluster's workers, cores and applications")
    stop = subcommands.add_parser("stop", help="stop the cluster")
    for command, run in ((status, _status), (stop, _stop)):
        _add_folder(command)
        command.set_defaults(run=run)


def run_spark(arguments: argparse.Namespace) -> int:
    if importlib.util.find_spec("pyspark") is None:
        print("kaspar: PySpark is not installed: pip install 'kaspar[spark]'", file=sys.stderr)
        return 1
    run: Run = arguments.run
    try:
        return run(arguments)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kaspar: interrupted; the processes that this command started were stopped", file=sys.stderr)
        return 130


def _add_start(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    start = subcommands.add_parser(
        "start",
        help="start a master and workers",
        description="Start a Spark master and its workers, and return when programs can run on them.",
    )
    start.add_argument("--workers", type=int, default=2, metavar="N", help="number of workers (default: %(default)s)")
    start.add_argument(
        "--cores",
        type=int,
        metavar="N",
        help="cores of each worker (default: this machine's cores, divided among the workers)",
    )
    start.add_argument("--memory", default="2g", metavar="SIZE", help="memory of each worker (default: %(default)s)")
    start.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s). Anyone who can reach it can run programs on the cluster",
    )
    start.add_argument("--port", type=int, default=7077, help="port of the master (default: %(default)s)")
    _add_folder(start)
    start.set_defaults(run=_start)


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dir",
        type=Path,
        metavar="FOLDER",
        help="folder for logs and process ids (default: ~/.local/state/kaspar/spark)",
    )


def _folder(arguments: argparse.Namespace) -> Path:
    from kaspar.spark.running.standalone import default_folder

    return (arguments.dir or default_folder()).resolve()


def _start(arguments: argparse.Namespace) -> int:
    from kaspar.spark.running.standalone import ClusterPlan, start

    plan = ClusterPlan(
        folder=_folder(arguments),
        workers=arguments.workers,
        cores=arguments.cores,
        memory=arguments.memory,
        host=arguments.host,
        port=arguments.port,
    )
    cluster = start(plan)
    workers, cores = _counted(plan.workers, "worker"), _counted(plan.cores_of_each, "core")
    print(f"{cluster.master} is ready: {workers} with {cores} and {plan.memory} each.")
    print(f"Web page: {cluster.page}. Logs: {plan.folder / 'logs'}.")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from kaspar.spark.running.standalone import running_cluster, status_of

    cluster = running_cluster(_folder(arguments))
    status = status_of(cluster.page)
    if status is None:
        raise KasparError(f"the master of {cluster.master} does not respond on {cluster.page}")
    print(f"{cluster.master}, page {cluster.page}")
    print(f"  workers       {status.workers} of {cluster.workers} alive")
    print(f"  cores         {status.cores_used} of {status.cores} in use")
    print(f"  memory        {status.memory_mb:,} MB")
    print(f"  applications  {', '.join(status.applications) or 'none'}")
    return 0


def _stop(arguments: argparse.Namespace) -> int:
    from kaspar.spark.running.standalone import stop

    ended = stop(_folder(arguments))
    stopped = f"The cluster is stopped: {_counted(ended, 'process', 'processes')} ended."
    print(stopped if ended else "The cluster had already ended.")
    return 0


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
