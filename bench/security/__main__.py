"""`python -m bench.security`: the cost of TLS, authentication, ACLs and quotas, compared with Apache Kafka."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import command, programs, report
from bench.rows import chosen
from bench.runner import Results, run_cases
from bench.security.bench import SecurityBench, SecurityCase
from bench.security.catalog import all_cases
from bench.security.sides import Certificates, secured
from bench.sides import Side, earlier, kafka, kaspar

_PROGRAM = "python -m bench.security"
_ROUNDS = 5
_PATIENCE = 0  # the loads to compare alternate within seconds, so that a busy machine disturbs both


def _run(arguments: argparse.Namespace, cases: Sequence[SecurityCase], sides: Sequence[Side]) -> tuple[Results, str]:
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)
    tools = programs.TlsPrograms.build()
    folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-security-", dir=command.TMPFS))
    certificates = Certificates.issue(folder)
    scale = command.QUICK_SCALE if arguments.quick else 1.0
    bench = SecurityBench(tools, folder, True, scale, _PATIENCE, certificates=certificates)
    began = time.monotonic()
    try:
        results = run_cases(bench, [secured(side, certificates) for side in sides], cases, rounds)
    finally:
        bench.close()
    minutes = (time.monotonic() - began) / 60
    others = results.others_shares
    return results, report.conditions(sides, rounds, minutes, on_tmpfs=True, others=others, program=_PROGRAM)


def main() -> int:
    arguments = command.new_parser(
        _PROGRAM,
        "What TLS, log-ins, ACLs and quotas cost Kaspar and Apache Kafka, under the same load.",
        rounds=_ROUNDS,
        example="tls*",
    ).parse_args()
    return command.run_command(
        arguments,
        chosen(all_cases(), arguments.only),
        partial(command.chosen_sides, arguments, kaspar, kafka, earlier),
        partial(_run, arguments),
        section="security",
    )


if __name__ == "__main__":
    sys.exit(main())
