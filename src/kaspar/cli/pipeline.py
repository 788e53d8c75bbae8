"""`kaspar pipeline`: runs Spark pipelines under a supervisor, shows them, stops and restarts them."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Group
from kaspar.cli.pipeline_options import folder_option
from kaspar.cli.pipeline_run import run

if TYPE_CHECKING:
    from kaspar.pipelines.folder import Folder

_STOP_WAIT_S: Final = 90.0
_START_WAIT_S: Final = 60.0
_NETWORK_S: Final = 5.0
"""The time for the response to arrive, in addition to the time that the host waits."""
_DESCRIPTION: Final = """\
Run Spark pipelines (programs with kaspar.streams, or any that call kaspar.pipelines.run) under a supervisor,
many of them in one Spark session. Failed pipelines are restarted; after a crash or a reboot they are resumed.
"""
_EXAMPLES: Final = """\
examples:
  kaspar pipeline run app.py                  run a program until Ctrl-C, or pass it to a running supervisor
  kaspar pipeline run                         resume all pipelines that were not stopped
  kaspar pipeline list                        states, rates and lag
  kaspar pipeline describe app                its queries, last error, log and description
  kaspar pipeline stop app                    stop it after its micro-batch
  kaspar pipeline restart app                 for example after its program was changed
  kaspar pipeline remove app                  stop it and delete its definition

Without --dir, all of them use the folder kaspar/pipelines in $XDG_STATE_HOME or ~/.local/state.
"""


@click.group("pipeline", cls=Group, help=_DESCRIPTION, epilog=_EXAMPLES)
def command() -> None:
    pass


command.add_command(run)

_JSON: Final = click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")


@command.command("list", epilog="Example: kaspar pipeline list --json")
@folder_option
@_JSON
def list_pipelines(folder: "Folder", as_json: bool) -> None:
    """Show all pipelines, with the state of each: starting, running, restarting (a query failed), failed (its program
    failed and will be retried), stopped, finished, or interrupted (its supervisor has ended; 'kaspar pipeline run'
    resumes it); and the metrics of its last micro-batch."""
    import msgspec

    from kaspar.cli.pipeline_text import table
    from kaspar.pipelines.looking import statuses_of

    statuses = statuses_of(folder)
    if as_json:
        print(msgspec.json.encode(statuses).decode())
    elif statuses:
        print("\n".join(table(statuses, _now_ms())))
        if folder.supervisor() is None:
            print(
                f"No supervisor is running in {folder.path}: 'kaspar pipeline run' resumes the pipelines that were "
                "not stopped."
            )
    else:
        print(f"No pipelines in {folder.path}: 'kaspar pipeline run PROGRAM' runs one.")


@command.command("describe", epilog="Example: kaspar pipeline describe word-count")
@click.argument("name")
@folder_option
@_JSON
def describe(name: str, folder: "Folder", as_json: bool) -> None:
    """Show a pipeline's program, queries, progress, last error, log and description."""
    import msgspec

    from kaspar.cli.pipeline_text import description
    from kaspar.pipelines.looking import details_of

    details = details_of(folder, name)
    if as_json:
        print(msgspec.json.encode(details).decode())
    else:
        print("\n".join(description(details, _now_ms())))


def _chosen_options(function: Callable[..., int]) -> Callable[..., int]:
    function = folder_option(function)
    function = click.option("--all", "is_all", is_flag=True, help="All pipelines of the folder.")(function)
    return click.argument("names", nargs=-1, metavar="[NAME]...")(function)


@command.command("stop", epilog="Example: kaspar pipeline stop word-count")
@_chosen_options
def stop(folder: "Folder", names: Sequence[str], is_all: bool) -> int:
    """Stop pipelines after their micro-batches. They stay stopped."""
    from kaspar.pipelines import definitions

    chosen = _chosen(folder, names, is_all=is_all)
    definitions.stop(folder, chosen)
    return _say_stopped(chosen, _applied(folder, chosen, _STOP_WAIT_S))


@command.command("restart", epilog="Example: kaspar pipeline restart word-count")
@_chosen_options
def restart(folder: "Folder", names: Sequence[str], is_all: bool) -> int:
    """Stop running pipelines, and run their programs again."""
    from kaspar.pipelines import definitions
    from kaspar.pipelines.lines import status_line
    from kaspar.pipelines.looking import statuses_of

    chosen = _chosen(folder, names, is_all=is_all)
    definitions.restart(folder, chosen)
    if folder.supervisor() is None:
        raise KasparError(
            f"no supervisor is running in {folder.path}: 'kaspar pipeline run' starts one, with {', '.join(chosen)}"
        )
    _applied(folder, chosen, _STOP_WAIT_S + _START_WAIT_S)
    for status in statuses_of(folder):
        if status.name in chosen:
            print(status_line(status))
    return 0


@command.command("remove", epilog="Example: kaspar pipeline remove word-count")
@_chosen_options
def remove(folder: "Folder", names: Sequence[str], is_all: bool) -> int:
    """Stop pipelines, and remove their definitions and logs."""
    from kaspar.pipelines import definitions

    chosen = _chosen(folder, names, is_all=is_all)
    definitions.stop(folder, chosen)
    unsettled = _applied(folder, chosen, _STOP_WAIT_S)
    if unsettled:
        return _say_stopped(unsettled, unsettled)
    definitions.remove(folder, chosen)
    _applied(folder, chosen, _STOP_WAIT_S)
    print(f"Removed {', '.join(chosen)}.")
    return 0


def _say_stopped(names: Sequence[str], unsettled: Sequence[str]) -> int:
    for name in names:
        if name in unsettled:
            print(f"kaspar: {name} did not stop within {_STOP_WAIT_S:.0f} s; it is still stopping", file=sys.stderr)
        else:
            print(f"{name} is stopped.")
    return 1 if unsettled else 0


def _chosen(folder: "Folder", names: Sequence[str], *, is_all: bool) -> list[str]:
    if bool(names) is is_all:
        raise KasparError("name one or more pipelines, or use --all")
    if not folder.exists():
        raise KasparError(f"there are no pipelines in {folder.path}")
    return folder.names() if is_all else list(dict.fromkeys(names))


def _applied(folder: "Folder", names: Sequence[str], wait_s: float) -> Sequence[str]:
    """Ask the host to apply the changes. Returns the pipelines that have not reached the wanted state. Without a host
    there are none: the next host starts from the wanted state."""
    from kaspar.pipelines.control import NoHost, ask
    from kaspar.pipelines.messages import ApplyChanges, Pipelines

    try:
        response = ask(folder.socket, ApplyChanges(tuple(names), wait_s), Pipelines, timeout_s=wait_s + _NETWORK_S)
    except NoHost:
        return ()
    return response.unsettled


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
