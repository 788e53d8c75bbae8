"""`python -m bench.tools`: the command line, the rounds, and what a run prints and writes."""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import programs, report
from bench.command import TMPFS, run_compared
from bench.rows import chosen, figure
from bench.runner import Results
from bench.sides import kaspar
from bench.tools.case import ToolCase
from bench.tools.cases import all_cases
from bench.topics import Topics
from tests.peers.process import BrokerProcess

_PROGRAM = "python -m bench.tools"
_ROUNDS = 5
_QUICK_SCALE = 0.3
_TOPICS = 20
_FAILURES = (programs.LoadError, subprocess.TimeoutExpired, OSError)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="The commands beside Kafka's own, on one broker. A whole run is written to docs/benchmarks.md.",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds of every case (default {_ROUNDS}, quick 1)")
    parser.add_argument("--only", metavar="NAME,...", help="only these cases; * matches anything: topics*")
    parser.add_argument("--quick", action="store_true", help="a third of the load and one round: for a first look")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    return parser.parse_args()


def _run_cases(broker: BrokerProcess, cases: Sequence[ToolCase], rounds: int, scale: float) -> Results:
    """The sides in turn, and the one that goes first changes with every round."""
    results = Results()
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name}", flush=True)
        for round_number in range(1, rounds + 1):
            for side in case.sides if round_number % 2 else reversed(case.sides):
                try:
                    values = case.measure(broker, side, scale)
                except _FAILURES as error:
                    results.fail(case, f"{side.title}: {str(error).strip().splitlines()[0]}")
                    print(f"    FAILED {side.title}: {error}", flush=True)
                    break
                shown = "  ".join(f"{figure(values[row.name])} {row.unit}" for row in case.rows)
                print(f"    round {round_number}  {side.title:30} {shown}", flush=True)
                results.add(side.role, values)
            if case.rows[0].name in results.failures:
                break
    return results


def _conditions(rounds: int, minutes: float) -> str:
    lines = [
        *report.run_and_machine(_PROGRAM, minutes),
        f"Linux {platform.release()}; Python {platform.python_version()}; rounds: {rounds}, the sides in turn",
        f"on a broker of Kaspar with {_TOPICS} topics, its data on a tmpfs",
    ]
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    arguments = _arguments()
    cases = chosen(all_cases(), arguments.only)
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)

    def run() -> tuple[Results, str]:
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-tools-", dir=TMPFS))
        began = time.monotonic()
        try:
            with kaspar().make(folder) as broker:
                topics = Topics(broker)
                for _ in range(_TOPICS):
                    topics.create(partitions=2)
                results = _run_cases(broker, cases, rounds, _QUICK_SCALE if arguments.quick else 1.0)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results, _conditions(rounds, (time.monotonic() - began) / 60)

    return run_compared(arguments, cases, run, section="tools")


if __name__ == "__main__":
    sys.exit(main())
