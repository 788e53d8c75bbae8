"""Seeds and rounds: `CHAOS_SEED` repeats a run; `--long` and `CHAOS_ROUNDS` (`make chaos-spark`) make it longer."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.kaspar import KasparProcess
from tests.peers.sasl_ssl import SecuredListener, User
from tests.spark.conftest import SETTINGS

ROUNDS = 2  # what `make test` has time for
LONG_ROUNDS = 24


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rounds" in metafunc.fixturenames:
        short = int(os.environ.get("CHAOS_ROUNDS", ROUNDS))
        long = pytest.param(LONG_ROUNDS, marks=pytest.mark.long)
        metafunc.parametrize("rounds", [short, long])


class MortalBroker(KasparProcess):
    """One that may be killed: no other test uses it. With `--secured`, queries log in at its `listener`."""

    def __init__(self, folder: Path, *, secured: bool) -> None:
        super().__init__(folder / "broker", overrides=SETTINGS)
        user = User("query", "query-pass-0815")
        self.listener = SecuredListener(folder / "security", self, user) if secured else None


@pytest.fixture
def mortal_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MortalBroker]:
    with MortalBroker(tmp_path, secured=request.config.getoption("--secured")) as broker:
        yield broker
        if broker.listener is not None:
            broker.listener.check_log(may_be_denied=True)
