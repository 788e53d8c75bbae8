"""`python -m bench.registry`: the command line, the rounds, and the output of a run."""

import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.command import TMPFS, compared_parser, run_compared
from bench.registry import apicurio
from bench.registry.bench import SCHEMAS, RegistryBench
from bench.registry.cases import all_cases
from bench.registry.wrk import require_wrk
from bench.rows import chosen
from bench.runner import Results, run_in_turn

_PROGRAM = "python -m bench.registry"
_ROUNDS = 3
_QUICK_SCALE = 0.3


def _conditions(rounds: int, minutes: float) -> str:
    lines = [
        *report.run_and_machine(_PROGRAM, minutes),
        f"Linux {platform.release()}; Python {platform.python_version()}; rounds: {rounds}, the sides in turn",
        "both registries on one broker of Kaspar, its data on a tmpfs; the load is that of wrk",
        f"Apicurio {apicurio.VERSION} keeps its schemas in Kafka (kafkasql), with a heap of {apicurio.HEAP}",
        f"each has {SCHEMAS:,} schemas at the start; Kaspar's process also serves the REST proxy",
    ]
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    arguments = compared_parser(
        _PROGRAM,
        "The schema registry beside Apicurio's on one broker, and the REST proxy.",
        rounds=_ROUNDS,
        example="read*",
        quick="a third",
    ).parse_args()
    cases = chosen(all_cases(), arguments.only)
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)

    def run() -> tuple[Results, str]:
        require_wrk()
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-registry-", dir=TMPFS))
        began = time.monotonic()
        try:
            with RegistryBench(folder, _QUICK_SCALE if arguments.quick else 1.0) as bench:
                results = run_in_turn(cases, rounds, lambda case, side: case.measure(bench, side))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results, _conditions(rounds, (time.monotonic() - began) / 60)

    return run_compared(arguments, cases, run, section="registry")


if __name__ == "__main__":
    sys.exit(main())
