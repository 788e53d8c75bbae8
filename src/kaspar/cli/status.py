"""`kaspar status`: what runs in the folder of `kaspar up`, for people and for programs."""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.cli.up import add_folder

if TYPE_CHECKING:
    from kaspar.supervisor.folder import Folder
    from kaspar.supervisor.status import ClusterStatus

_PAUSE_S: Final = 0.2
_EXAMPLES: Final = """\
examples:
  kaspar status                               a table of the brokers in ./kaspar-data
  kaspar status --dir /data/c1 --wait 30      for scripts: go on when the cluster is ready
  kaspar status --json | jq '.brokers[] | select(.controller) | .id'

exit codes: 0 if every broker and ZooKeeper server is ready, 1 otherwise
"""


def add_status(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    status = commands.add_parser(
        "status",
        help="show what 'kaspar up' runs",
        description="Show the brokers and ZooKeeper servers that 'kaspar up' runs in a folder: their processes,\n"
        "whether they are ready, and which broker is the controller.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_folder(status)
    status.add_argument("--json", action="store_true", help="as JSON")
    status.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="wait up to this long until everything is ready (default: do not wait)",
    )


def run_status(arguments: argparse.Namespace) -> int:
    import msgspec

    from kaspar.supervisor.folder import Folder

    folder = Folder(arguments.dir)
    try:
        status = _status(folder, wait_s=arguments.wait)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if arguments.json:
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
        except KasparError:  # it may only just have been started, and write its files
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
    return [
        head,
        *_table(("broker", "port", "process", "state", "", "metrics", "data"), brokers),
        *_table(("ZooKeeper", "port", "process", "state"), zookeepers),
    ]


def _table(head: Sequence[str], members: Iterable[Sequence[object]]) -> list[str]:
    """Nothing if there are no members."""
    rows = [[str(cell) if cell is not None else "-" for cell in member] for member in members]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return [f"  {line.rstrip()}" for line in lines] if rows else []
