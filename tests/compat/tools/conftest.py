"""One cluster of Apache Kafka, three nodes, for all tests of this folder; and the two sides of each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.tools.comparing import Side
from tests.peers.kafka import kafka_jars
from tests.peers.kafka_cluster import KafkaCluster
from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing

SETTINGS = {
    "auto.leader.rebalance.enable": "false",  # elections are what is tested
    "offsets.topic.num.partitions": "3",  # a coordinator on every node
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    unless_missing(kafka_jars)
    with KafkaCluster(tmp_path_factory.mktemp("cluster"), overrides=SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_tools() -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as tools:
        yield tools


@pytest.fixture
def sides(cluster: KafkaCluster, kafka_tools: KafkaTools, tmp_path: Path) -> tuple[Side, Side]:
    """Kafka's commands, and ours."""
    return Side("kafka", cluster, tmp_path, kafka_tools), Side("ours", cluster, tmp_path, None)
