"""`python -m bench.console`: the command line, the rounds, and the output of a run."""

import platform
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench import report
from bench.command import compared_parser, run_compared
from bench.console.cases import ConsoleBench, ConsoleCase, all_cases
from bench.console.cluster import LargeCluster, large_cluster, running_cluster
from bench.console.contents import Contents
from bench.meters import MachineUse, cpu_seconds
from bench.rows import chosen
from bench.runner import Results, run_in_turn
from bench.up.case import Program
from tests.peers.chromium import chromium

_PROGRAM = "python -m bench.console"
_ROUNDS = 5
_QUICK_SCALE = 0.25


@contextmanager
def _cluster(contents: Contents, running: Path | None) -> Iterator[LargeCluster]:
    if running is not None:
        yield running_cluster(contents, running)
        return
    with large_cluster(contents) as cluster:
        yield cluster


def main() -> int:
    parser = compared_parser(
        _PROGRAM,
        "The console's views on a large cluster, in Chromium, and what open pages cost.",
        rounds=_ROUNDS,
        example="views,mess*",
        quick="a quarter",
    )
    parser.add_argument("--topics", type=int, default=10_000, metavar="N", help="(default 10000)")
    parser.add_argument("--groups", type=int, default=1_000, metavar="N", help="(default 1000)")
    parser.add_argument("--subjects", type=int, default=300, metavar="N", help="(default 300)")
    parser.add_argument("--records", type=int, metavar="N", help="of the big topic (default 100 million)")
    parser.add_argument("--running", type=Path, metavar="FOLDER", help="a cluster that 'kaspar up' runs, filled before")
    arguments = parser.parse_args()
    scale = _QUICK_SCALE if arguments.quick else 1.0
    records = arguments.records or int(100_000_000 * scale)
    contents = Contents(arguments.topics, arguments.groups, arguments.subjects, records)
    cases = chosen(all_cases(), arguments.only)
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)

    def run() -> tuple[Results, str]:
        began = time.monotonic()
        others: list[float] = []
        with _cluster(contents, arguments.running) as cluster, chromium() as browser:
            bench, version = ConsoleBench(cluster, browser, scale), browser.version

            def measure(case: ConsoleCase, side: Program) -> Mapping[str, float]:
                machine, used_s = MachineUse.now(), _used_s(cluster)
                values = case.measure(bench)
                others.append(MachineUse.now().others_share_since(machine, _used_s(cluster) - used_s))
                return values

            results = run_in_turn(cases, rounds, measure)
        lines = [
            *report.run_and_machine(_PROGRAM, (time.monotonic() - began) / 60),
            f"Linux {platform.release()}; Python {platform.python_version()}; Chromium {version}; rounds: {rounds}",
            f"`kaspar up`, data on a tmpfs: {contents}",
            *report.shares_of_others(others),
        ]
        return results, "\n".join(f"- {line}" for line in lines)

    return run_compared(arguments, cases, run, section="console")


def _used_s(cluster: LargeCluster) -> float:
    return cpu_seconds(cluster.broker_pid) + cpu_seconds(cluster.services_pid)


if __name__ == "__main__":
    sys.exit(main())
