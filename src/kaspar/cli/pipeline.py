"""`kaspar pipeline`: runs Spark pipelines under a supervisor, shows them, stops and restarts them."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.cli.pipeline_options import add_folder, folder_of
from kaspar.cli.pipeline_run import add_run

if TYPE_CHECKING:
    from kaspar.pipelines.folder import Folder

Run = Callable[[argparse.Namespace], int]

_STOP_WAIT_S: Final = 90.0
_START_WAIT_S: Final = 60.0
_NETWORK_S: Final = 5.0
"""For a response to arrive, beside the time that it waits."""
_DESCRIPTION: Final = """\
Run Spark pipelines (programs with kaspar.streams, or any that call kaspar.pipelines.run) under a supervisor,
many of them in one Spark session. What fails is started again; what ran before a crash or a reboot is resumed.
"""
_EXAMPLES: Final = """\
examples:
  kaspar pipeline run app.py                  run a program, until Ctrl-C; also given to a supervisor that runs already
  kaspar pipeline run                         resume all pipelines that were not stopped
  kaspar pipeline list                        what runs, how fast, and how far behind
  kaspar pipeline describe app                its queries, its last error, its log, and what it does
  kaspar pipeline stop app                    finish its micro-batch, and stay stopped
  kaspar pipeline restart app                 also after a change of its program
  kaspar pipeline remove app                  stop and forget it

Without --dir, all of them use the folder kaspar/pipelines in $XDG_STATE_HOME or ~/.local/state.
"""


def add_pipeline(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The parser of `kaspar pipeline`. Every subcommand sets `run`, which `run_pipeline` calls."""
    pipeline = commands.add_parser(
        "pipeline",
        help="run Spark pipelines, and keep them running",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = pipeline.add_subparsers(dest="pipeline_command", metavar="COMMAND", required=True)
    add_run(subcommands)
    _add_list(subcommands)
    _add_describe(subcommands)
    for name, run, help_text, description in (
        ("stop", _stop, "stop pipelines", "Stop pipelines after their micro-batches. They stay stopped."),
        ("restart", _restart, "start pipelines again", "Stop pipelines that run, and execute their programs again."),
        ("remove", _remove, "stop and forget pipelines", "Stop pipelines, and remove their definitions and logs."),
    ):
        _add_change(subcommands, name, run, help_text, description)


def run_pipeline(arguments: argparse.Namespace) -> int:
    run: Run = arguments.run
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _add_list(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = subcommands.add_parser(
        "list",
        help="show all pipelines",
        description="Show the state of each pipeline: starting, running, restarting (a query failed), failed (its "
        "program failed, and is tried again), stopped, finished, or interrupted (its supervisor has ended, and "
        "'kaspar pipeline run' resumes it); and the figures of its last micro-batch.",
        epilog="Example: kaspar pipeline list --json",
    )
    add_folder(command)
    command.add_argument("--json", action="store_true", help="as JSON, for programs")
    command.set_defaults(run=_list)


def _add_describe(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = subcommands.add_parser(
        "describe",
        help="show all that is known of a pipeline",
        description="Show a pipeline's program, queries, progress, last error and log, and what it says it does.",
        epilog="Example: kaspar pipeline describe word-count",
    )
    command.add_argument("name", metavar="NAME")
    add_folder(command)
    command.add_argument("--json", action="store_true", help="as JSON, for programs")
    command.set_defaults(run=_describe)


def _add_change(
    subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Run,
    help_text: str,
    description: str,
) -> None:
    command = subcommands.add_parser(
        name, help=help_text, description=description, epilog=f"Example: kaspar pipeline {name} word-count"
    )
    command.add_argument("names", nargs="*", metavar="NAME")
    command.add_argument("--all", action="store_true", help="all pipelines of the folder")
    add_folder(command)
    command.set_defaults(run=run)


def _list(arguments: argparse.Namespace) -> int:
    import msgspec

    from kaspar.cli.pipeline_text import table
    from kaspar.pipelines.looking import statuses_of

    folder = folder_of(arguments)
    statuses = statuses_of(folder)
    if arguments.json:
        print(msgspec.json.encode(statuses).decode())
    elif statuses:
        print("\n".join(table(statuses, _now_ms())))
        if folder.supervisor() is None:
            print(f"No supervisor runs in {folder.path}: 'kaspar pipeline run' resumes what was not stopped.")
    else:
        print(f"There are no pipelines in {folder.path}: 'kaspar pipeline run PROGRAM' runs one.")
    return 0


def _describe(arguments: argparse.Namespace) -> int:
    import msgspec

    from kaspar.cli.pipeline_text import description
    from kaspar.pipelines.looking import details_of

    details = details_of(folder_of(arguments), arguments.name)
    if arguments.json:
        print(msgspec.json.encode(details).decode())
    else:
        print("\n".join(description(details, _now_ms())))
    return 0


def _stop(arguments: argparse.Namespace) -> int:
    from kaspar.pipelines import definitions

    folder, names = _chosen(arguments)
    definitions.stop(folder, names)
    return _say_stopped(names, _applied(folder, names, _STOP_WAIT_S))


def _say_stopped(names: Sequence[str], unsettled: Sequence[str]) -> int:
    for name in names:
        if name in unsettled:
            print(f"kaspar: {name} did not stop within {_STOP_WAIT_S:.0f} s, and goes on stopping", file=sys.stderr)
        else:
            print(f"{name} is stopped.")
    return 1 if unsettled else 0


def _restart(arguments: argparse.Namespace) -> int:
    from kaspar.pipelines import definitions
    from kaspar.pipelines.lines import status_line
    from kaspar.pipelines.looking import statuses_of

    folder, names = _chosen(arguments)
    definitions.restart(folder, names)
    if folder.supervisor() is None:
        raise KasparError(
            f"no supervisor runs in {folder.path}: 'kaspar pipeline run' starts it, with {', '.join(names)}"
        )
    _applied(folder, names, _STOP_WAIT_S + _START_WAIT_S)
    for status in statuses_of(folder):
        if status.name in names:
            print(status_line(status))
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from kaspar.pipelines import definitions

    folder, names = _chosen(arguments)
    definitions.stop(folder, names)
    unsettled = _applied(folder, names, _STOP_WAIT_S)
    if unsettled:
        return _say_stopped(unsettled, unsettled)
    definitions.remove(folder, names)
    _applied(folder, names, _STOP_WAIT_S)
    print(f"Removed {', '.join(names)}.")
    return 0


def _chosen(arguments: argparse.Namespace) -> "tuple[Folder, list[str]]":
    folder = folder_of(arguments)
    if bool(arguments.names) is arguments.all:
        raise KasparError("name one or more pipelines, or give --all")
    if not folder.exists():
        raise KasparError(f"there are no pipelines in {folder.path}")
    return folder, folder.names() if arguments.all else list(dict.fromkeys(arguments.names))


def _applied(folder: "Folder", names: Sequence[str], wait_s: float) -> Sequence[str]:
    """Have the host follow what was changed. Returns those that are not yet as wanted. Without a host all of them are:
    the next one begins with that."""
    from kaspar.pipelines.control import NoHost, ask
    from kaspar.pipelines.messages import ApplyChanges, Pipelines

    try:
        response = ask(folder.socket, ApplyChanges(tuple(names), wait_s), Pipelines, timeout_s=wait_s + _NETWORK_S)
    except NoHost:
        return ()
    return response.unsettled


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
