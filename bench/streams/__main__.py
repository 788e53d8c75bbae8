"""`python -m bench.streams`: the command line, the rounds, and what a run prints and writes."""

import argparse
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark
from confluent_kafka import KafkaException

from bench import programs, report
from bench.command import TMPFS, run_compared
from bench.rows import chosen, figure
from bench.runner import Results
from bench.streams.cases import Case, all_cases
from bench.streams.programs import versions
from tests.peers.kafka import KAFKA_VERSION

_ROUNDS = 3
_QUICK_SCALE = 0.2
_FAILURES = (programs.LoadError, KafkaException, OSError)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.streams",
        description="Streams programs beside Kafka Streams, Quix Streams and Faust, on one broker. A whole run is "
        "written to docs/benchmarks.md.",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds of every case (default {_ROUNDS}, quick 1)")
    parser.add_argument("--only", metavar="NAME,...", help="only these cases; * matches anything: words*")
    parser.add_argument("--quick", action="store_true", help="a fifth of the load and one round: for a first look")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    return parser.parse_args()


def _run_cases(folder: Path, cases: Sequence[Case], rounds: int, scale: float) -> Results:
    """The sides in turn, and the one that goes first changes with every round."""
    results = Results()
    began = time.monotonic()
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name}  ({(time.monotonic() - began) / 60:.1f} min so far)", flush=True)
        for round_number in range(1, rounds + 1):
            for side in case.sides if round_number % 2 else reversed(case.sides):
                try:
                    values = case.measure(folder, side, scale)
                except _FAILURES as error:
                    results.fail(case, f"{side.title}: {str(error).strip().splitlines()[0]}")
                    print(f"    FAILED {side.title}: {error}", flush=True)
                    break
                shown = "  ".join(f"{figure(values[row.name])} {row.unit}" for row in case.rows)
                print(f"    round {round_number}  {side.title:16} {shown}", flush=True)
                results.add(side.role, values)
            if case.name in results.failures:
                break
    return results


def _conditions(rounds: int, minutes: float) -> str:
    lines = [
        *report.run_and_machine("python -m bench.streams", minutes),
        f"Linux {platform.release()}; data and state on a tmpfs; rounds: {rounds}, the sides in turn",
        f"kaspar.streams on Spark {pyspark.__version__}, local; Kafka Streams {KAFKA_VERSION}; {versions()}",
        "each program runs on a broker of its own: Kaspar, one process",
    ]
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    arguments = _arguments()
    cases = chosen(all_cases(), arguments.only)
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)

    def run() -> tuple[Results, str]:
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-streams-", dir=TMPFS))
        began = time.monotonic()
        try:
            results = _run_cases(folder, cases, rounds, _QUICK_SCALE if arguments.quick else 1.0)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results, _conditions(rounds, (time.monotonic() - began) / 60)

    return run_compared(arguments, cases, run, section="streams")


if __name__ == "__main__":
    sys.exit(main())
