"""`python -m bench.spark`: the command line, the rounds, and the output of a run."""

import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark
from pyspark.errors import PySparkException

from bench import programs, report
from bench.command import TMPFS, compared_parser, run_compared
from bench.rows import chosen, figure
from bench.runner import Results
from bench.spark.avro import ReadAvro
from bench.spark.cases import Case, all_cases
from bench.spark.stage import HEAP, MASTER, Stage
from tests.peers.spark_connector import CONNECTOR_VERSION

_ROUNDS = 3
_QUICK_SCALE = 0.2
_FAILURES = (PySparkException, programs.LoadError, OSError, ArithmeticError)


def _run_cases(stage: Stage, cases: Sequence[Case], rounds: int) -> Results:
    """Measure the sides alternately. The one that goes first changes with every round. Round 0 is not counted."""
    results = Results()
    began = time.monotonic()
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name}  ({(time.monotonic() - began) / 60:.1f} min so far)", flush=True)
        for round_number in range(rounds + 1):
            for side in case.sides if round_number % 2 == 0 else reversed(case.sides):
                try:
                    values = case.measure(stage, side)
                except _FAILURES as error:
                    results.fail(case, f"{side.title}: {str(error).strip().splitlines()[0]}")
                    print(f"    FAILED {side.title}: {error}", flush=True)
                    break
                shown = "  ".join(f"{figure(values[row.name])} {row.unit}" for row in case.rows)
                others = stage.others_shares[-1]
                print(f"    round {round_number}  {side.title:18} {shown}  (others: {others:.0%})", flush=True)
                if round_number > 0:
                    results.add(side.role, values)
                    results.others_shares.append(others)
            if any(row.name in results.failures for row in case.rows):
                break
    return results


def _conditions(rounds: int, minutes: float, others: Sequence[float]) -> str:
    lines = [
        *report.run_and_machine("python -m bench.spark", minutes),
        f"Linux {platform.release()}; data on a tmpfs; rounds: {rounds}, the sides in turn, after one not counted",
        f"one session: Spark {pyspark.__version__}, {MASTER}, as `kaspar.spark.session()` makes it, heap {HEAP}",
        f"one broker: Kaspar, one process, for both sides; Spark's connector is {CONNECTOR_VERSION}",
        *report.shares_of_others(others),
    ]
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    arguments = compared_parser(
        "python -m bench.spark",
        "Our data source beside Spark's own connector.",
        rounds=_ROUNDS,
        example="read_100b*",
        quick="a fifth",
    ).parse_args()
    cases = chosen([*all_cases(), ReadAvro()], arguments.only)
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)

    def run() -> tuple[Results, str]:
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-spark-", dir=TMPFS))
        began = time.monotonic()
        try:
            stage = Stage.set_up(folder, _QUICK_SCALE if arguments.quick else 1.0)
            try:
                results = _run_cases(stage, cases, rounds)
            finally:
                stage.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results, _conditions(rounds, (time.monotonic() - began) / 60, results.others_shares)

    return run_compared(arguments, cases, run, section="spark")


if __name__ == "__main__":
    sys.exit(main())
