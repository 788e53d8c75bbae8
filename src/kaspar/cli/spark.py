"""`kaspar spark`: a standalone Spark cluster on this machine, and open transactions of exactly-once queries."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

import click

from kaspar.base.errors import KasparError
from kaspar.base.sentences import counted
from kaspar.cli.command import Group
from kaspar.cli.failures import INTERRUPTED
from kaspar.cli.spark_transactions import transactions


@click.group(
    "spark",
    cls=Group,
    epilog="Example: kaspar spark start --workers 2; programs use it with "
    "kaspar.spark.session(master='spark://127.0.0.1:7077').",
)
@click.pass_context
def command(context: click.Context) -> None:
    """Run a standalone Spark cluster on this machine, from the pip package, and manage transactions of exactly-once
    queries."""
    if not context.resilient_parsing and importlib.util.find_spec("pyspark") is None:
        raise KasparError("PySpark is not installed: pip install 'kaspar[spark]'")


command.add_command(transactions)

_FOLDER: Final = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder for logs and process ids (default: ~/.local/state/kaspar/spark).",
)


def _resolved(folder: Path | None) -> Path:
    from kaspar.spark.running.standalone import default_folder

    return (folder or default_folder()).resolve()


@command.command("start", epilog="Example: kaspar spark start --workers 2 --memory 4g")
@click.option("--workers", type=int, default=2, metavar="N", help="Number of workers (default: 2).")
@click.option(
    "--cores",
    type=int,
    metavar="N",
    help="Cores of each worker (default: this machine's cores, divided among the workers).",
)
@click.option("--memory", default="2g", metavar="SIZE", help="Memory of each worker (default: 2g).")
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on (default: 127.0.0.1). Anyone who can reach it can run programs on the cluster.",
)
@click.option("--port", type=int, default=7077, help="Port of the master (default: 7077).")
@_FOLDER
def start(workers: int, cores: int | None, memory: str, host: str, port: int, folder: Path | None) -> int:
    """Start a Spark master and its workers, and return when programs can run on them."""
    from kaspar.spark.running.standalone import ClusterPlan
    from kaspar.spark.running.standalone import start as start_cluster

    plan = ClusterPlan(folder=_resolved(folder), workers=workers, cores=cores, memory=memory, host=host, port=port)
    try:
        cluster = start_cluster(plan)
    except KeyboardInterrupt:
        print("kaspar: interrupted; the processes that this command started were stopped", file=sys.stderr)
        return INTERRUPTED
    of_each = counted(plan.cores_of_each, "core")
    print(f"{cluster.master} is ready: {counted(plan.workers, 'worker')} with {of_each} and {plan.memory} each.")
    print(f"Web page: {cluster.page}. Logs: {plan.folder / 'logs'}.")
    return 0


@command.command("status", epilog="Example: kaspar spark status")
@_FOLDER
def status(folder: Path | None) -> None:
    """Show the cluster's workers, cores and applications."""
    from kaspar.spark.running.standalone import running_cluster, status_of

    cluster = running_cluster(_resolved(folder))
    found = status_of(cluster.page)
    if found is None:
        raise KasparError(f"the master of {cluster.master} does not respond on {cluster.page}")
    print(f"{cluster.master}, page {cluster.page}")
    print(f"  workers       {found.workers} of {cluster.workers} alive")
    print(f"  cores         {found.cores_used} of {found.cores} in use")
    print(f"  memory        {found.memory_mb:,} MB")
    print(f"  applications  {', '.join(found.applications) or 'none'}")


@command.command("stop", epilog="Example: kaspar spark stop")
@_FOLDER
def stop(folder: Path | None) -> None:
    """Stop the cluster."""
    from kaspar.spark.running.standalone import stop as stop_cluster

    ended = stop_cluster(_resolved(folder))
    stopped = f"The cluster is stopped: {counted(ended, 'process', 'processes')} ended."
    print(stopped if ended else "The cluster had already ended.")
