"""One broker for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.peers.kaspar import KasparProcess

SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("broker"), overrides=SETTINGS) as running:
        yield running
