"""Options and fixtures for all tests."""

import os
import random
import secrets

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against",
        choices=("kaspar", "kafka"),
        default="kaspar",
        help="the broker that the compat tests run against: ours, or Apache Kafka's, which shows a wrong expectation",
    )
    parser.addoption("--long", action="store_true", help="run the long forms of tests, and only those")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: a form that takes minutes, run only with --long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = bool(config.getoption("--long"))
    left_out = [item for item in items if (item.get_closest_marker("long") is not None) is not wanted]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Randomness of tests that kill and disturb. `CHAOS_SEED` repeats a run; a failing test shows its seed."""
    seed = os.environ.get("CHAOS_SEED") or str(secrets.randbits(32))
    print(f"CHAOS_SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")
