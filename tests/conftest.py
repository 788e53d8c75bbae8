"""Options and fixtures for all tests."""

import os
import random
import secrets

import pytest

from tests.peers.against import leave_out_for_cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against",
        choices=("kaspar", "kafka", "cluster"),
        default="kaspar",
        help="what the compat tests run against: our broker, Apache Kafka's, which shows a wrong expectation, or three "
        "of ours on ZooKeeper",
    )
    parser.addoption(
        "--secured",
        action="store_true",
        help="the clients of the fault tests log in over SASL_SSL, with ACLs for just what they do",
    )
    parser.addoption("--long", action="store_true", help="run the long forms of tests, and only those")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: a form that takes minutes, run only with --long")
    config.addinivalue_line("markers", "one_broker(reason): not run with --against cluster")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = leave_out_for_cluster(items) if config.getoption("--against") == "cluster" else []
    for item in items:
        if item in left_out:
            continue
        is_long = item.get_closest_marker("long") is not None
        (chosen if is_long is config.getoption("--long") else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Randomness of tests that kill and disturb. `CHAOS_SEED` repeats a run; a failing test shows its seed."""
    seed = os.environ.get("CHAOS_SEED") or str(secrets.randbits(32))
    print(f"CHAOS_SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")
