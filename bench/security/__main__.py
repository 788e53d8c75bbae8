"""`python -m bench.security`: the command line, and what a run prints and writes."""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import programs, report
from bench.rows import chosen
from bench.runner import Results, run_cases
from bench.security.bench import SecurityBench, SecurityCase
from bench.security.catalog import all_cases
from bench.security.sides import Certificates, secured
from bench.sides import Side, earlier, kafka, kaspar
from tests.peers.downloads import DownloadError, ToolMissingError

_ROOT = Path(__file__).parents[2]
_DOCUMENT = _ROOT / "docs" / "benchmarks.md"
_TMPFS = Path("/dev/shm")
_PROGRAM = "python -m bench.security"
_ROUNDS = 5
_PATIENCE = 0  # what is compared alternates within seconds; a busy machine disturbs both
_QUICK_SCALE = 0.25


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="What TLS, log-ins, ACLs and quotas cost Kaspar and Apache Kafka, under the same load. A whole run "
        "is written to docs/benchmarks.md.",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds of every case (default {_ROUNDS}, quick 1)")
    parser.add_argument("--only", metavar="NAME,...", help="only these cases; * matches anything: tls*")
    parser.add_argument("--quick", action="store_true", help="a quarter of the load and one round: for a first look")
    parser.add_argument("--target", choices=("both", "kaspar", "kafka"), default="both", help="measure one side alone")
    parser.add_argument("--earlier", metavar="CHECKOUT", type=Path, help="another checkout of Kaspar in Kafka's place")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    return parser.parse_args()


def _chosen_sides(arguments: argparse.Namespace) -> list[Side]:
    if arguments.earlier is not None:
        return [kaspar(), earlier(arguments.earlier)]
    sides = {"kaspar": kaspar, "kafka": kafka}
    return [make() for name, make in sides.items() if arguments.target in ("both", name)]


def _run(arguments: argparse.Namespace, cases: Sequence[SecurityCase], sides: Sequence[Side]) -> tuple[Results, str]:
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)
    tools = programs.TlsPrograms.build()
    folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-security-", dir=_TMPFS))
    scale, patience = (_QUICK_SCALE, 0) if arguments.quick else (1.0, _PATIENCE)
    certificates = Certificates.issue(folder)
    bench = SecurityBench(tools, folder, True, scale, patience, certificates=certificates)
    began = time.monotonic()
    try:
        results = run_cases(bench, [secured(side, certificates) for side in sides], cases, rounds)
    finally:
        bench.close()
    minutes = (time.monotonic() - began) / 60
    others = results.others_shares
    return results, report.conditions(sides, rounds, minutes, on_tmpfs=True, others=others, program=_PROGRAM)


def main() -> int:
    # SIGTERM ends the run as Ctrl-C does, so that brokers are stopped and their data removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    arguments = _arguments()
    cases = chosen(all_cases(), arguments.only)
    if arguments.list:
        for case in cases:
            print(f"{case.name:28} {case.rows[0].title} ({', '.join(row.unit for row in case.rows)})")
        return 0
    try:
        sides = _chosen_sides(arguments)
        results, conditions = _run(arguments, cases, sides)
    except (DownloadError, ToolMissingError, programs.BuildError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    with_goals = len(sides) == 2 and arguments.earlier is None
    text = f"{conditions}\n\n{report.table(sides, cases, results, with_goals=with_goals)}"
    if with_goals:
        text += f"\n\n{report.summary(cases, results)}"
    print(f"\n{text}")
    if with_goals and arguments.only is None and not arguments.quick:
        report.write_into(_DOCUMENT, "security", text)
        print(f"\nwritten to {_DOCUMENT.relative_to(_ROOT)}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
