"""The common part of the commands that compare with Apache Kafka: options, and the output of a run."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from bench import programs, report
from bench.rows import Named, WithRows
from bench.runner import Results
from kaspar.base.errors import KasparError
from tests.peers.downloads import DownloadError, ToolMissingError

ROOT: Final = Path(__file__).parent.parent
DOCUMENT: Final = ROOT / "docs" / "benchmarks.md"
TMPFS: Final = Path("/dev/shm")
QUICK_SCALE: Final = 0.25
_CANNOT_RUN: Final = (DownloadError, ToolMissingError, programs.BuildError, FileNotFoundError, KasparError)


class NamedCase(WithRows, Named, Protocol): ...


class ComparedCase(report.Compared, Named, Protocol): ...


SideT = TypeVar("SideT", bound=report.Described)
CaseT = TypeVar("CaseT", bound=NamedCase)


def compared_parser(
    program: str, description: str, *, rounds: int, example: str, quick: str
) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark. `quick` says what part of the load --quick runs: "a quarter"."""
    parser = argparse.ArgumentParser(
        prog=program, description=f"{description} A whole run is written to docs/benchmarks.md."
    )
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds of every case (default {rounds}, quick 1)")
    parser.add_argument("--only", metavar="NAME,...", help=f"only these cases; * matches anything: {example}")
    parser.add_argument("--quick", action="store_true", help=f"{quick} of the load and one round: for a first look")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    return parser


def new_parser(program: str, description: str, *, rounds: int, example: str) -> argparse.ArgumentParser:
    """A parser for benchmarks whose sides can be chosen."""
    parser = compared_parser(program, description, rounds=rounds, example=example, quick="a quarter")
    parser.add_argument("--target", choices=("both", "kaspar", "kafka"), default="both", help="measure one side alone")
    parser.add_argument("--earlier", metavar="CHECKOUT", type=Path, help="another checkout of Kaspar in Kafka's place")
    return parser


def chosen_sides(
    arguments: argparse.Namespace,
    ours: Callable[[], SideT],
    kafka: Callable[[], SideT],
    earlier: Callable[[Path], SideT],
) -> list[SideT]:
    if arguments.earlier is not None:
        return [ours(), earlier(arguments.earlier.resolve())]  # absolute: a broker has its own working directory
    sides = {"kaspar": ours, "kafka": kafka}
    return [make() for name, make in sides.items() if arguments.target in ("both", name)]


def run_command(
    arguments: argparse.Namespace,
    cases: Sequence[CaseT],
    choose: Callable[[], list[SideT]],
    run: Callable[[Sequence[CaseT], Sequence[SideT]], tuple[Results, str]],
    *,
    section: str,
    has_goals: bool = True,
) -> int:
    """Run the cases and print the results. A whole run is written to `section` of the document. The exit code."""
    # SIGTERM ends the run like Ctrl-C, so that brokers are stopped and their data is removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if arguments.list:
        for case in cases:
            print(f"{case.name:28} {case.rows[0].title} ({', '.join(row.unit for row in case.rows)})")
        return 0
    try:
        sides = choose()
        results, conditions = run(cases, sides)
    except _CANNOT_RUN as error:
        print(error, file=sys.stderr)
        return 1
    with_goals = has_goals and len(sides) == 2 and arguments.earlier is None
    text = f"{conditions}\n\n{report.table(sides, cases, results, with_goals=with_goals)}"
    if with_goals:
        text += f"\n\n{report.summary(cases, results)}"
    print(f"\n{text}")
    if with_goals and arguments.only is None and not arguments.quick:
        report.write_into(DOCUMENT, section, text)
        print(f"\nwritten to {DOCUMENT.relative_to(ROOT)}")
    return 1 if results.failures else 0


def run_compared(
    arguments: argparse.Namespace,
    cases: Sequence[ComparedCase],
    run: Callable[[], tuple[Results, str]],
    *,
    section: str,
) -> int:
    """Like run_command, for cases that each have two sides of their own. `run` returns results and conditions."""
    # SIGTERM ends the run like Ctrl-C, so that processes are stopped and their data is removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if arguments.list:
        for case in cases:
            print(f"{case.name:28} {case.rows[0].section}: {case.rows[0].title} ({case.rows[0].unit})")
        return 0
    try:
        results, conditions = run()
    except (DownloadError, ToolMissingError, programs.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    text = f"{conditions}\n\n{report.tables_by_section(cases, results)}\n\n{report.summary(cases, results)}"
    print(f"\n{text}")
    if arguments.only is None and not arguments.quick:
        report.write_into(DOCUMENT, section, text)
        print(f"\nwritten to {DOCUMENT.relative_to(ROOT)}")
    return 1 if results.failures else 0
