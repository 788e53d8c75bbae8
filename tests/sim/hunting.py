"""Runs simulations of a product with a planted bug until one fails.

`python -m tests.sim.hunting [name ...]` measures how soon that is, for the declarations in mutations.py.
"""

import argparse
import gc
from collections.abc import Iterable, Sequence

from tests.sim.mutations import MUTATIONS, Mutation
from tests.sim.simulation import Result, simulate

ENOUGH = 5
"""So many finds give a rate that is right within a factor of two, mostly."""


def hunt(mutation: Mutation, seeds: Iterable[int]) -> Result | None:
    """The first simulation that fails; None if none does."""
    for seed in seeds:
        with mutation.plant():
            result = simulate(seed)
        if result.violation is not None:
            return result
    return None


def measure(mutation: Mutation, most_seeds: int, enough: int = ENOUGH) -> tuple[list[Result], int]:
    """The first few that fail, from seed 1 on, and how many were run for that."""
    found: list[Result] = []
    last = 0
    while len(found) < enough and last < most_seeds:
        result = hunt(mutation, range(last + 1, most_seeds + 1))
        last = most_seeds if result is None else result.seed
        found += [] if result is None else [result]
    return found, last


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.hunting", description="Measure how bugs are found.")
    parser.add_argument("names", nargs="*", help="of planted bugs (default: all)")
    parser.add_argument("--most", type=int, default=1000, help="seeds to try for each (default: %(default)s)")
    parser.add_argument("--finds", type=int, default=ENOUGH, help="that are enough (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    gc.collect()
    gc.freeze()
    for mutation in MUTATIONS:
        if not chosen.names or mutation.name in chosen.names:
            found, last = measure(mutation, chosen.most, chosen.finds)
            first = found[0].seed if found else None
            print(f"{mutation.name}: seed={first}, found={len(found)}, of={last}", flush=True)
            for result in found:
                print(f"    {result.seed}: {result.violation}", flush=True)


if __name__ == "__main__":
    main()
