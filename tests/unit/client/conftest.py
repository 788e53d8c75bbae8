"""`run` runs an asynchronous test on every event loop."""

import pytest

from tests.unit.client.loops import LOOPS, Run, runner


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    return runner(request.param)
