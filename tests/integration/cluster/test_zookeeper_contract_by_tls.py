"""What every store must keep, kept by ZooKeeper over TLS and a login: tests/unit/metadata/test_store_contract.py."""

import asyncio
import itertools
from collections.abc import Callable

import pytest

from kaspar.config import BrokerConfig
from kaspar.metadata.zookeeper import ZooKeeperMetadata
from tests.peers.secured_zookeeper import SecuredZooKeeper, login_module
from tests.unit.metadata import test_store_contract as contract
from tests.unit.metadata.stores import within
from tests.unit.metadata.test_store_contract import Run, Scenario

pytestmark = pytest.mark.long
globals().update({name: test for name, test in vars(contract).items() if name.startswith("test_")})
_numbers = itertools.count(1)


@pytest.fixture
def run(zookeeper: SecuredZooKeeper) -> Run:
    """Runs a scenario on a new path, whose nodes belong to the session that creates them."""
    settings = {
        **zookeeper.tls(),
        "zookeeper.connect": f"{zookeeper.secure}/test-{next(_numbers)}",
        "zookeeper.set.acl": "true",
        "kaspar.zookeeper.sasl.jaas.config": login_module("broker"),
    }

    async def main(scenario: Scenario) -> None:
        metadata = await ZooKeeperMetadata.configured(BrokerConfig.of(settings))
        try:
            await within(30, scenario(metadata))
        finally:
            await metadata.close()

    run: Callable[[Scenario], None] = lambda scenario: asyncio.run(main(scenario))  # noqa: E731
    return run
