"""`python -m bench.tools`: the command line, the rounds, and the output of a run."""

import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.command import TMPFS, compared_parser, run_compared
from bench.rows import chosen
from bench.runner import Results, run_in_turn
from bench.sides import kaspar
from bench.tools.cases import all_cases
from bench.topics import Topics

_PROGRAM = "python -m bench.tools"
_ROUNDS = 5
_QUICK_SCALE = 0.3
_TOPICS = 20


def _conditions(rounds: int, minutes: float) -> str:
    lines = [
        *report.run_and_machine(_PROGRAM, minutes),
        f"Linux {platform.release()}; Python {platform.python_version()}; rounds: {rounds}, the sides in turn",
        f"on a broker of Kaspar with {_TOPICS} topics, its data on a tmpfs",
    ]
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    arguments = compared_parser(
        _PROGRAM,
        "The commands beside Kafka's own, on one broker.",
        rounds=_ROUNDS,
        example="topics*",
        quick="a third",
    ).parse_args()
    cases = chosen(all_cases(), arguments.only)
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)
    scale = _QUICK_SCALE if arguments.quick else 1.0

    def run() -> tuple[Results, str]:
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-tools-", dir=TMPFS))
        began = time.monotonic()
        try:
            with kaspar().make(folder) as broker:
                topics = Topics(broker)
                for _ in range(_TOPICS):
                    topics.create(partitions=2)
                results = run_in_turn(cases, rounds, lambda case, side: case.measure(broker, side, scale))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results, _conditions(rounds, (time.monotonic() - began) / 60)

    return run_compared(arguments, cases, run, section="tools")


if __name__ == "__main__":
    sys.exit(main())
