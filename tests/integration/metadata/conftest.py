"""One ZooKeeper for all tests of this folder; a path of its own for each test."""

import itertools
from collections.abc import Iterator

import pytest

from kaspar.zookeeper import ZooKeeperServer
from tests.peers.missing import unless_missing
from tests.peers.zookeeper import address_of, serving, zookeeper

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = unless_missing(lambda: zookeeper(tmp_path_factory.mktemp("zookeeper")))
    with serving(server):
        yield server


@pytest.fixture
def chroot() -> str:
    return f"/test-{next(_numbers)}"


@pytest.fixture
def address(server: ZooKeeperServer, chroot: str) -> str:
    return address_of(server) + chroot
