"""Runs simulations: `make sim SEEDS=1000`, or `make sim SEED=17` for one, with its trace.

A failing seed is shrunk to the faults that matter, and its trace is printed. The same seed always gives the same
simulation, so it can be looked at again and again.
"""

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

from tests.sim.report import report
from tests.sim.shrinking import shrunk
from tests.sim.simulation import Result, simulate

FIXED_HASHES = {"PYTHONHASHSEED": "0"}
"""The order in which a set of strings is iterated must be the same in every process."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description="Simulate clusters.")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="only this one, with its trace")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(default: %(default)s)")
    parser.add_argument("--no-shrinking", action="store_true", help="report failing seeds as they are")
    chosen = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != FIXED_HASHES["PYTHONHASHSEED"]:
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim", *sys.argv[1:]], {**os.environ, **FIXED_HASHES})
    if chosen.seed is not None:
        result = simulate(chosen.seed, traced=True)
        print(report(result, lines=len(result.trace)))
        return 0 if result.violation is None else 1
    return run_many(range(chosen.first, chosen.first + chosen.seeds), chosen.processes, shrinks=not chosen.no_shrinking)


def run_many(seeds: Sequence[int], processes: int, *, shrinks: bool) -> int:
    """How many failed."""
    started = time.monotonic()
    failed: list[Result] = []
    records = changes = void = 0
    with multiprocessing.get_context("spawn").Pool(processes, gc.freeze) as pool:
        for number, result in enumerate(pool.imap_unordered(simulate, seeds, chunksize=4), 1):
            records += result.records
            changes += result.changes
            void += result.is_void
            if result.violation is not None:
                failed.append(result)
                print(f"seed {result.seed} failed: {result.violation}", flush=True)
            if number % 500 == 0:
                print(f"{number} simulations, {time.monotonic() - started:.0f} s", flush=True)
    print(
        f"{len(seeds)} simulations, {len(failed)} failed, in {time.monotonic() - started:.0f} s: "
        f"{records} committed records, {changes} changes of partitions, {void} ended early with nothing promised",
        flush=True,
    )
    if failed:
        first = min(failed, key=lambda result: result.seed)
        smallest = shrunk(first) if shrinks else first
        print(report(simulate(smallest.seed, smallest.faults, traced=True)))
    return len(failed)


if __name__ == "__main__":
    sys.exit(min(main(), 100))
