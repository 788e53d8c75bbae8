"""One cluster of three brokers for all tests that take its brokers down: each leaves it as it found it, all up. And a
ZooKeeper server for tests that start brokers of their own.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.testing import Cluster
from kaspar.zookeeper.config import write_config
from kaspar.zookeeper.server import ZooKeeperServer
from tests.integration.cluster.up import needs_java
from tests.peers.error_log import ErrorLog
from tests.peers.missing import unless_missing
from tests.peers.secured_zookeeper import SecuredZooKeeper, secured_zookeeper
from tests.peers.wire import free_port
from tests.peers.zookeeper import serving

OVERRIDES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}


@pytest.fixture(scope="package")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    needs_java()
    with Cluster(brokers=3, data_dir=tmp_path_factory.mktemp("three"), overrides=OVERRIDES) as cluster:
        logs = [ErrorLog(cluster.log_file(broker)) for broker in cluster.broker_ids]
        yield cluster
        assert [entry for log in logs for entry in log.unexpected()] == []


@pytest.fixture
def cluster(three_brokers: Cluster) -> Iterator[Cluster]:
    """All brokers are up and know each other, before and after the test."""
    yield three_brokers
    for broker in three_brokers.broker_ids:
        if not three_brokers.is_running(broker):
            three_brokers.start_broker(broker)
    three_brokers.wait_complete()


@pytest.fixture
def zookeeper_port(tmp_path: Path) -> Iterator[int]:
    port = free_port()
    server = ZooKeeperServer(write_config(tmp_path / "zookeeper", client_port=port), heap="128m")
    with contextlib.ExitStack() as stack:
        server.start(ends_with_caller=True)
        stack.callback(server.stop)
        server.wait_serving()
        yield port


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """By TLS and in the clear, with logins."""
    secured = unless_missing(lambda: secured_zookeeper(tmp_path_factory.mktemp("zookeeper")))
    with serving(secured.server):
        yield secured
