"""`python -m bench.streams`: the command line, the rounds, and what a run prints and writes."""

import argparse
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyspark

from bench import report
from bench.command import TMPFS, run_compared
from bench.rows import chosen
from bench.runner import Results, run_in_turn
from bench.streams.cases import all_cases
from bench.streams.programs import versions
from tests.peers.kafka import KAFKA_VERSION

_ROUNDS = 3
_QUICK_SCALE = 0.2


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
    scale = _QUICK_SCALE if arguments.quick else 1.0

    def run() -> tuple[Results, str]:
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-streams-", dir=TMPFS))
        began = time.monotonic()
        try:
            results = run_in_turn(cases, rounds, lambda case, side: case.measure(folder, side, scale))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results, _conditions(rounds, (time.monotonic() - began) / 60)

    return run_compared(arguments, cases, run, section="streams")


if __name__ == "__main__":
    sys.exit(main())
