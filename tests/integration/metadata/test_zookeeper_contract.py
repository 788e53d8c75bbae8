"""What every store must keep, kept by ZooKeeper: the tests of tests/unit/metadata/test_store_contract.py."""

import asyncio
from collections.abc import Callable

import pytest

from kaspar.metadata.zookeeper import ZooKeeperMetadata
from tests.unit.metadata import test_store_contract as contract
from tests.unit.metadata.stores import within
from tests.unit.metadata.test_store_contract import Run, Scenario

globals().update({name: test for name, test in vars(contract).items() if name.startswith("test_")})


@pytest.fixture
def run(address: str) -> Run:
    """Runs a scenario on a new path."""

    async def main(scenario: Scenario) -> None:
        metadata = await ZooKeeperMetadata.open(address)
        try:
            await within(30, scenario(metadata))
        finally:
            await metadata.close()

    run: Callable[[Scenario], None] = lambda scenario: asyncio.run(main(scenario))  # noqa: E731
    return run
