"""`python -m bench.cluster`: three brokers of Kaspar compared with three of Apache Kafka."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import command, programs, report
from bench.cluster.bench import ClusterBench, ClusterCase
from bench.cluster.catalog import all_cases
from bench.cluster.sides import ClusterSide, earlier_cluster, kafka_cluster, our_cluster
from bench.rows import chosen
from bench.runner import Results, run_cases
from bench.sides import KASPAR_ENVIRONMENT

_PROGRAM = "python -m bench.cluster"
_ROUNDS = 3
_PATIENCE = 1


def _run(
    arguments: argparse.Namespace, cases: Sequence[ClusterCase], sides: Sequence[ClusterSide]
) -> tuple[Results, str]:
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)
    tools = programs.Programs.build()
    folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-cluster-", dir=command.TMPFS))
    scale, patience = (command.QUICK_SCALE, 0) if arguments.quick else (1.0, _PATIENCE)
    bench = ClusterBench(tools, folder, scale, patience)
    began = time.monotonic()
    try:
        results = run_cases(bench, sides, cases, rounds)
    finally:
        bench.close()
        shutil.rmtree(folder, ignore_errors=True)
    minutes = (time.monotonic() - began) / 60
    others = results.others_shares
    return results, report.conditions(sides, rounds, minutes, on_tmpfs=True, others=others, program=_PROGRAM)


def main() -> int:
    os.environ.update(KASPAR_ENVIRONMENT)
    arguments = command.new_parser(
        _PROGRAM,
        "The same load against three brokers of Kaspar and of Apache Kafka.",
        rounds=_ROUNDS,
        example="replicated_1k*",
    ).parse_args()
    return command.run_command(
        arguments,
        chosen(all_cases(), arguments.only),
        partial(command.chosen_sides, arguments, our_cluster, kafka_cluster, earlier_cluster),
        partial(_run, arguments),
        section="cluster",
    )


if __name__ == "__main__":
    sys.exit(main())
