"""`kaspar stop`: asks the supervisor of `kaspar up` to stop, and waits until everything has ended."""

import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.cli.command import Command
from kaspar.cli.failures import INTERRUPTED
from kaspar.cli.up import folder_option

if TYPE_CHECKING:
    from kaspar.supervisor.folder import Folder, Running

_PAUSE_S: Final = 0.05
_PROGRESS_EVERY_S: Final = 5.0
_EXAMPLES: Final = """\
examples:
  kaspar stop                                 stop what 'kaspar up' runs in ./kaspar-data
  kaspar stop --dir /data/c1 --timeout 300    allow more time to close many logs

exit codes: 0 if nothing is running in the folder any more, or nothing was; 1 if something is still running
"""


@click.command("stop", cls=Command, epilog=_EXAMPLES)
@folder_option
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    default=120.0,
    metavar="SECONDS",
    help="Stop waiting after this time; shutdown continues in the background (default: 120).",
)
def command(folder: Path, timeout_s: float) -> int:
    """Stop what 'kaspar up' runs in a folder, as Ctrl-C would: the services, then the brokers one after the other, then
    ZooKeeper. Returns when all of them have stopped."""
    from kaspar.supervisor.folder import Folder

    try:
        return _stop(Folder(folder), timeout_s=timeout_s)
    except KeyboardInterrupt:
        print("kaspar: interrupted; shutdown continues in the background", file=sys.stderr)
        return INTERRUPTED


def _stop(folder: "Folder", *, timeout_s: float) -> int:
    running = folder.running()
    if running is None or not _alive(running):
        print(f"Nothing is running in {folder.path}.")
        return 0
    running.supervisor.send(signal.SIGTERM)
    begun = time.monotonic()
    progress_at = begun + _PROGRESS_EVERY_S
    while alive := _alive(running):
        now = time.monotonic()
        if now > begun + timeout_s:
            print(f"kaspar: {_and(alive)} did not stop within {timeout_s:g} s", file=sys.stderr)
            return 1
        if now > progress_at:
            progress_at = now + _PROGRESS_EVERY_S
            print(f"waiting for {_and(alive)}", flush=True)
        time.sleep(_PAUSE_S)
        running = folder.running() or running  # includes processes that were started since
    print(f"Stopped everything in {folder.path} in {time.monotonic() - begun:.1f} s.")
    return 0


def _alive(running: "Running") -> list[str]:
    """The names of processes that have not ended. If the supervisor was killed, its members end by themselves."""
    members = {f"broker {number}": member.process for number, member in running.brokers.items()}
    members |= {f"ZooKeeper {number}": member.process for number, member in running.zookeepers.items()}
    members["the services"] = running.services.process
    alive = [name for name, process in members.items() if process is not None and process.is_running()]
    return alive or (["the supervisor"] if running.supervisor.is_running() else [])


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
