"""`python -m bench`: one broker of Kaspar compared with one of Apache Kafka."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import command, programs, report
from bench.bench import Bench
from bench.cases import Case, all_cases
from bench.rows import chosen
from bench.runner import Results, run_cases
from bench.sides import Side, earlier, kafka, kafka_again, kaspar

_ROUNDS = 3
_PATIENCE = 2


def _arguments() -> argparse.Namespace:
    parser = command.new_parser(
        "python -m bench",
        "The same load against Kaspar and Apache Kafka.",
        rounds=_ROUNDS,
        example="produce_1k*",
    )
    parser.add_argument("--disk", action="store_true", help="data on the disk (build/bench) and not on a tmpfs")
    parser.add_argument("--control", action="store_true", help="Apache Kafka in both places: how far from 1 is noise?")
    return parser.parse_args()


def _chosen_sides(arguments: argparse.Namespace) -> list[Side]:
    if arguments.control:
        return [kafka_again(), kafka()]
    return command.chosen_sides(arguments, kaspar, kafka, earlier)


def _run(arguments: argparse.Namespace, cases: Sequence[Case], sides: Sequence[Side]) -> tuple[Results, str]:
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)
    on_tmpfs = not arguments.disk
    parent = command.TMPFS if on_tmpfs else command.ROOT / "build" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    tools = programs.Programs.build()
    folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-", dir=parent))
    scale, patience = (command.QUICK_SCALE, 0) if arguments.quick else (1.0, _PATIENCE)
    bench = Bench(tools, folder, on_tmpfs, scale, patience)
    began = time.monotonic()
    try:
        results = run_cases(bench, sides, cases, rounds)
    finally:
        bench.close()
    minutes = (time.monotonic() - began) / 60
    return results, report.conditions(sides, rounds, minutes, on_tmpfs=on_tmpfs, others=results.others_shares)


def main() -> int:
    arguments = _arguments()
    return command.run_command(
        arguments,
        chosen(all_cases(), arguments.only),
        partial(_chosen_sides, arguments),
        partial(_run, arguments),
        section="disk" if arguments.disk else "tmpfs",
        has_goals=not arguments.control,
    )


if __name__ == "__main__":
    sys.exit(main())
