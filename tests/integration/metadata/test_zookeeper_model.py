"""ZooKeeper against the model of a store: random transactions of several sessions, closings and reopenings."""

import asyncio
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.metadata.zookeeper import ZooKeeperMetadata
from kaspar.zookeeper import ZooKeeperServer
from tests.peers.zookeeper import address_of
from tests.property.test_store import Script, actions, play

_numbers = itertools.count(1)


@settings(max_examples=20, deadline=None)
@given(st.lists(actions, max_size=20))
def test_zookeeper_is_the_model(server: ZooKeeperServer, script: Script) -> None:
    """Its watches of children also fire when their parent is created or deleted."""
    address = f"{address_of(server)}/model-{next(_numbers)}"
    asyncio.run(play(script, lambda: ZooKeeperMetadata.open(address), fires_more=True))
