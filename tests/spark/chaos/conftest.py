"""Seeds and rounds: `CHAOS_SEED` repeats a run; `--long` and `CHAOS_ROUNDS` (`make chaos-spark`) make it longer."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.kaspar import KasparProcess
from tests.spark.conftest import SETTINGS

ROUNDS = 4  # what `make test` has time for
LONG_ROUNDS = 24


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rounds" in metafunc.fixturenames:
        short = int(os.environ.get("CHAOS_ROUNDS", ROUNDS))
        long = pytest.param(LONG_ROUNDS, marks=pytest.mark.long)
        metafunc.parametrize("rounds", [short, long])


@pytest.fixture
def mortal_broker(tmp_path: Path) -> Iterator[KasparProcess]:
    """One that may be killed: no other test uses it."""
    with KasparProcess(tmp_path / "broker", overrides=SETTINGS) as broker:
        yield broker
