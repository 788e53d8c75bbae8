"""Seeds and rounds: `CHAOS_SEED` repeats a run, `CHAOS_ROUNDS` makes it longer (`make chaos-spark`)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.kaspar import KasparProcess
from tests.spark.conftest import SETTINGS

ROUNDS = 4  # what `make test` has time for


@pytest.fixture
def rounds() -> int:
    return int(os.environ.get("CHAOS_ROUNDS", ROUNDS))


@pytest.fixture
def mortal_broker(tmp_path: Path) -> Iterator[KasparProcess]:
    """One that may be killed: no other test uses it."""
    with KasparProcess(tmp_path / "broker", overrides=SETTINGS) as broker:
        yield broker
