"""`python -m bench.streams`: the command line, the rounds, and the output of a run."""

import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyspark

from bench import report
from bench.command import TMPFS, compared_parser, run_compared
from bench.rows import chosen
from bench.runner import Results, run_in_turn
from bench.streams.cases import all_cases
from bench.streams.programs import versions
from tests.peers.kafka import KAFKA_VERSION

_ROUNDS = 3
_QUICK_SCALE = 0.2


def _conditions(rounds: int, minutes: float) -> str:
    lines = [
        *report.run_and_machine("python -m bench.streams", minutes),
        f"Linux {platform.release()}; data and state on a tmpfs; rounds: {rounds}, the sides in turn",
        f"kaspar.streams on Spark {pyspark.__version__}, local; Kafka Streams {KAFKA_VERSION}; {versions()}",
        "each program runs on a broker of its own: Kaspar, one process",
    ]
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    arguments = compared_parser(
        "python -m bench.streams",
        "Streams programs beside Kafka Streams, Quix Streams and Faust, on one broker.",
        rounds=_ROUNDS,
        example="words*",
        quick="a fifth",
    ).parse_args()
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
