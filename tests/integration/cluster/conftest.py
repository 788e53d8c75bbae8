"""One cluster of three brokers for all tests that take its brokers down: each leaves it as it found it, all up."""

from collections.abc import Iterator

import pytest

from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java
from tests.peers.error_log import ErrorLog

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
