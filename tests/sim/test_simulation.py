"""Simulated clusters keep what is promised, whatever goes wrong; and simulations find it when one does not."""

import gc
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.sim.faults import Fault
from tests.sim.hunting import hunt
from tests.sim.mutations import MUTATIONS, Mutation
from tests.sim.page import PAGE, table
from tests.sim.plans import plan
from tests.sim.report import report
from tests.sim.shrinking import shrunk
from tests.sim.simulation import CHAOS_S, Result, simulate

ROOT = Path(__file__).parent.parent.parent
SEEDS = int(os.environ.get("SEEDS", "150"))
AT_ONCE = 10


@pytest.fixture(autouse=True, scope="module")
def _quick_collections() -> Iterator[None]:
    """After each simulation its garbage is collected, for which everything else need not be looked at."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("first", range(1, SEEDS + 1, AT_ONCE))
def test_a_simulated_cluster_keeps_what_is_promised(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        result = simulate(seed)
        if result.violation is not None:
            smallest = shrunk(result)
            pytest.fail(report(simulate(seed, smallest.faults, traced=True)))


@pytest.mark.parametrize(
    "mutation", [each for each in MUTATIONS if each.is_found_soon], ids=lambda mutation: mutation.name
)
def test_a_planted_bug_is_found(mutation: Mutation) -> None:
    """By the seed that has found it before; if what is simulated has changed since, by another one."""
    assert mutation.seed is not None
    assert hunt(mutation, [mutation.seed]) or hunt(mutation, range(1, mutation.found_within + 1))


@pytest.mark.long
@pytest.mark.parametrize("mutation", [each for each in MUTATIONS if each.found], ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_found_within_so_many_seeds(mutation: Mutation) -> None:
    assert hunt(mutation, range(1, mutation.found_within + 1))


def test_the_page_has_the_planted_bugs() -> None:
    assert table() in PAGE.read_text(), "write it with: python -m tests.sim.page"


def test_a_seed_gives_the_same_simulation_in_every_process() -> None:
    mine = simulate(7, traced=True)
    again = simulate(7, traced=True)
    assert again.trace == mine.trace
    command = [sys.executable, "-m", "tests.sim", "--seed", "7"]
    other = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert other.stdout.startswith("\n".join(mine.trace))


def test_a_failing_simulation_is_shrunk_to_the_faults_that_matter() -> None:
    faults = tuple(plan(random.Random(3), seconds=CHAOS_S))
    guilty = {faults[1], faults[-1]}

    def fails_with_both(seed: int, some: Sequence[Fault]) -> Result:
        return Result(seed, tuple(some), "lost" if guilty <= set(some) else None, (), 0, 0, False, 0, "")

    assert len(faults) > 4
    assert set(shrunk(fails_with_both(1, faults), fails_with_both).faults) == guilty
