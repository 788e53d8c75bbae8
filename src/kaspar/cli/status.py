"""`kaspar status`: shows what runs in the folder of `kaspar up`."""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Command
from kaspar.cli.up import folder_option

if TYPE_CHECKING:
    from kaspar.supervisor.folder import Folder
    from kaspar.supervisor.status import ClusterStatus

_PAUSE_S: Final = 0.2
_EXAMPLES: Final = """\
examples:
  kaspar status                               a table of the brokers in ./kaspar-data
  kaspar status --dir /data/c1 --wait 30      for scripts: wait until the cluster is ready
  kaspar status --json | jq '.brokers[] | select(.controller) | .id'
  kaspar status --json | jq -r '.services[] | select(.name == "registry") | .url'

exit codes: 0 if every broker, ZooKeeper server and service is ready, 1 otherwise
"""


@click.command("status", cls=Command, epilog=_EXAMPLES)
@folder_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--wait",
    "wait_s",
    type=float,
    default=0.0,
    metavar="SECONDS",
    help="Wait up to this long until everything is ready (default: do not wait).",
)
def command(folder: Path, as_json: bool, wait_s: float) -> int:
    """Show the brokers, ZooKeeper servers and services that 'kaspar up' runs in a folder: their processes, whether they
    are ready, and which broker is the controller."""
    from kaspar.supervisor.folder import Folder

    return _show(Folder(folder), as_json=as_json, wait_s=wait_s)


def _show(folder: "Folder", *, as_json: bool, wait_s: float) -> int:
    import msgspec

    status = _status(folder, wait_s=wait_s)
    if as_json:
        print(msgspec.json.encode(status).decode())
    elif status.brokers:
        print("\n".join(_lines(folder, status)))
    if not status.brokers:
        print(
            f"kaspar: there is no cluster in {folder.path}: 'kaspar up --dir {folder.path}' starts one", file=sys.stderr
        )
    return 0 if status.ready else 1


def _status(folder: "Folder", *, wait_s: float) -> "ClusterStatus":
    from kaspar.supervisor.status import NOTHING, status_of

    until = time.monotonic() + wait_s
    while True:
        is_late = time.monotonic() >= until
        try:
            plan = folder.plan() if folder.path.exists() else None
            status = NOTHING if plan is None else status_of(folder, plan)
        except KasparError:  # the cluster may just be starting and writing its files
            if is_late:
                raise
        else:
            if status.ready or is_late:
                return status
        time.sleep(_PAUSE_S)


def _lines(folder: "Folder", status: "ClusterStatus") -> list[str]:
    from kaspar.supervisor.status import MemberState

    if status.ready:
        servers = ",".join(f"127.0.0.1:{broker.port}" for broker in status.brokers)
        head = f"{folder.path} is ready: bootstrap servers {servers}"
        if folder.clients.exists():
            head += f"; settings for clients are in {folder.clients}"
    elif set(status.states) == {MemberState.STOPPED}:
        head = f"{folder.path} is stopped: 'kaspar up --dir {folder.path}' starts it"
    else:
        head = f"{folder.path} is not ready"
    brokers = [
        (each.id, each.port, each.pid, each.state, "controller" if each.controller else "", each.metrics, each.log_dir)
        for each in status.brokers
    ]
    zookeepers = [(each.id, each.port, each.pid, each.state) for each in status.zookeepers]
    services = [(each.name, each.port, each.pid, each.state, each.url) for each in status.services]
    return [
        head,
        *_table(("broker", "port", "process", "state", "", "metrics", "data"), brokers),
        *_table(("ZooKeeper", "port", "process", "state"), zookeepers),
        *_table(("service", "port", "process", "state", "address"), services),
    ]


def _table(head: Sequence[str], members: Iterable[Sequence[object]]) -> list[str]:
    """A table as lines of text; empty if there are no members."""
    rows = [[str(cell) if cell is not None else "-" for cell in member] for member in members]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return [f"  {line.rstrip()}" for line in lines] if rows else []
