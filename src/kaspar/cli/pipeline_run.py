"""`kaspar pipeline run`: runs the supervisor of a folder, or passes programs to the one that is already running."""

import contextlib
import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Command
from kaspar.cli.pipeline_options import folder_option

if TYPE_CHECKING:
    from kaspar.pipelines.folder import Folder, SessionPlan
    from kaspar.pipelines.supervisor import Supervisor

_FOLLOW_EVERY_S: Final = 1.0
_START_WAIT_S: Final = 60.0
_EXAMPLES: Final = """\
examples:
  kaspar pipeline run app.py                          until Ctrl-C
  kaspar pipeline run orders.py clicks.py             both in one Spark session
  kaspar pipeline run app.py --name eu -- --region eu the same program, under another name, with arguments
  kaspar pipeline run                                 resume all pipelines that were not stopped
  kaspar pipeline run app.py --master spark://host:7077 --conf spark.driver.memory=4g

If a supervisor is already running in the folder, the programs are passed to it and the command returns. --master and
--conf are saved in the folder for later starts.
"""


@dataclass(frozen=True, slots=True)
class RunOptions:
    programs: Sequence[Path]
    program_arguments: Sequence[str]
    name: str | None
    master: str | None
    conf: Sequence[str]
    metrics: str | None
    follow: bool


class _RunCommand(Command):
    """A command whose arguments after `--` are for the programs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, ctx.obj = split_arguments(args)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENT ...]"]


def split_arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into those of the command, and those after `--`."""
    given = list(words)
    if "--" not in given:
        return given, []
    at = given.index("--")
    return given[:at], given[at + 1 :]


@click.command("run", cls=_RunCommand, epilog=_EXAMPLES)
@click.argument("programs", nargs=-1, type=click.Path(path_type=Path), metavar="[PROGRAM]...")
@click.option("--name", metavar="NAME", help="Name of the pipeline (default: the file name without .py).")
@folder_option
@click.option(
    "--master",
    metavar="URL",
    help="Spark master (default: as before in this folder, or $KASPAR_SPARK_MASTER, or all cores).",
)
@click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    help="A Spark setting; may be repeated. An empty value removes it.",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics on this address, under /metrics.")
@click.option("--follow", is_flag=True, help="If a supervisor is already running: show the pipelines until Ctrl-C.")
@click.pass_obj
def run(program_arguments: Sequence[str], /, folder: "Folder", **given: Any) -> int:
    """Run Python programs until Ctrl-C or SIGTERM, each in a thread of one process with one Spark session, together
    with all other pipelines of the folder that were not stopped; without a PROGRAM, only those. A pipeline that fails
    is restarted, and so is the process if it ends."""
    options = RunOptions(program_arguments=program_arguments, **given)
    if importlib.util.find_spec("pyspark") is None:
        raise KasparError("PySpark is not installed: pip install 'kaspar[spark]'")
    if options.program_arguments and not options.programs:
        raise KasparError("arguments after -- are for a program, but no program is given")
    folder.make()
    with folder.supervising() as is_mine:
        if is_mine:
            return _supervise(folder, options)
    return _hand_over(folder, options)


def _supervise(folder: "Folder", options: RunOptions) -> int:
    from kaspar.pipelines.definitions import add, left_to_run
    from kaspar.pipelines.display import Display
    from kaspar.pipelines.supervisor import Supervisor, end_leftovers

    folder.write_session(_session(folder.session(), options))
    add(folder, options.programs, options.program_arguments, options.name)
    names = left_to_run(folder)
    if not names:
        raise KasparError(f"no pipelines to run in {folder.path}: name a program, or restart a pipeline by name")
    display = Display(sys.stdout)
    supervisor = Supervisor(folder, display)
    with _served(options.metrics, supervisor):
        end_leftovers(folder)
        display.say(f"Starting Spark for {', '.join(names)}.")
        return supervisor.run()


def _session(earlier: "SessionPlan", options: RunOptions) -> "SessionPlan":
    from kaspar.pipelines.folder import SessionPlan

    config = dict(earlier.config)
    for given in options.conf:
        name, is_setting, value = given.partition("=")
        if not is_setting or not name:
            raise KasparError(f"--conf {given} is not NAME=VALUE")
        config[name] = value
    return SessionPlan(options.master or earlier.master, {name: value for name, value in config.items() if value})


@contextlib.contextmanager
def _served(address: str | None, supervisor: "Supervisor") -> Iterator[None]:
    from kaspar.pipelines.metrics import metrics_page

    if address is None:
        yield
        return
    page = metrics_page(address, lambda: supervisor.statuses)
    page.start()
    try:
        yield
    finally:
        page.stop()


def _hand_over(folder: "Folder", options: RunOptions) -> int:
    from kaspar.pipelines.control import NoHost, ask
    from kaspar.pipelines.definitions import add
    from kaspar.pipelines.lines import status_line
    from kaspar.pipelines.messages import ApplyChanges, Pipelines

    if options.metrics or _session(folder.session(), options) != folder.session():
        raise KasparError(
            f"a supervisor is already running in {folder.path}, and --master, --conf and --metrics take effect only "
            "at its start: stop it first, or choose another folder with --dir"
        )
    names = add(folder, options.programs, options.program_arguments, options.name)
    if not names and not options.follow:
        raise KasparError(
            f"a supervisor is already running in {folder.path}: 'kaspar pipeline list' shows its pipelines"
        )
    if names:
        print(f"Passed to the supervisor in {folder.path}: {', '.join(names)}.", flush=True)
        try:
            request = ApplyChanges(tuple(names), _START_WAIT_S)
            response = ask(folder.socket, request, Pipelines, timeout_s=_START_WAIT_S + 5)
        except NoHost:
            print("Its host is starting, and will run them.")
        else:
            for status in response.statuses:
                if status.name in names:
                    print(status_line(status), flush=True)
    return _follow(folder, names) if options.follow else 0


def _follow(folder: "Folder", names: Sequence[str]) -> int:
    """Show the pipelines until Ctrl-C, which does not end them, or until the supervisor has ended."""
    from kaspar.pipelines.display import Display
    from kaspar.pipelines.looking import statuses_of

    display = Display(sys.stdout)
    while folder.supervisor() is not None:
        display.show([status for status in statuses_of(folder) if not names or status.name in names])
        time.sleep(_FOLLOW_EVERY_S)
    print(f"The supervisor of {folder.path} has ended.")
    return 1
