"""`kaspar stop`: asks the supervisor of `kaspar up` to stop, and waits until everything has ended."""

import argparse
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.cli.up import add_folder

if TYPE_CHECKING:
    from kaspar.supervisor.folder import Folder, Running

_PAUSE_S: Final = 0.05
_PROGRESS_EVERY_S: Final = 5.0
_EXAMPLES: Final = """\
examples:
  kaspar stop                                 stop what 'kaspar up' runs in ./kaspar-data
  kaspar stop --dir /data/c1 --timeout 300    with more time to close many logs

exit codes: 0 if nothing runs in the folder any more, also if nothing did before; 1 if something still runs
"""


def add_stop(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    stop = commands.add_parser(
        "stop",
        help="stop what 'kaspar up' runs",
        description="Stop the brokers and ZooKeeper servers that 'kaspar up' runs in a folder, as Ctrl-C there does:\n"
        "brokers one after the other, each cleanly, then ZooKeeper. Returns when all of them have ended.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_folder(stop)
    stop.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="stop waiting after this time; they go on stopping (default: %(default)g)",
    )


def run_stop(arguments: argparse.Namespace) -> int:
    from kaspar.supervisor.folder import Folder

    try:
        return _stop(Folder(arguments.dir), timeout_s=arguments.timeout)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kaspar: interrupted; what was asked to stop goes on stopping", file=sys.stderr)
        return 130


def _stop(folder: "Folder", *, timeout_s: float) -> int:
    running = folder.running()
    if running is None or not _alive(running):
        print(f"Nothing runs in {folder.path}.")
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
        running = folder.running() or running  # with processes that were started since
    print(f"Stopped what ran in {folder.path}, in {time.monotonic() - begun:.1f} s.")
    return 0


def _alive(running: "Running") -> list[str]:
    """Names of what has not ended. Members of a supervisor that was killed end by themselves."""
    members = {f"broker {number}": member.process for number, member in running.brokers.items()}
    members |= {f"ZooKeeper {number}": member.process for number, member in running.zookeepers.items()}
    alive = [name for name, process in members.items() if process is not None and process.is_running()]
    return alive or (["the supervisor"] if running.supervisor.is_running() else [])


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
