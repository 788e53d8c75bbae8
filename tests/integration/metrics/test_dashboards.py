"""The queries of public Grafana dashboards for Kafka behind the JMX exporter have data, in a real Prometheus.

They are written down in tests/data/dashboards, each with its source. What asks for Java's virtual machine, for
Kubernetes or for metrics that Apache Kafka 4 does not have any more is listed there as out of scope, with the reason.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.testing import Cluster
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.prometheus import Prometheus, require_prometheus

FOLDER: Final = Path(__file__).parent.parent.parent / "data" / "dashboards"
LABELS: Final = {
    "namespace": "kafka",
    "strimzi_io_cluster": "kaspar",
    "strimzi_io_name": "kaspar-kafka",
    "container": "kafka",
}
"""Those that Prometheus has from Kubernetes where Strimzi's dashboard is used; the pod is named after the broker."""

VARIABLES: Final = {
    "kubernetes_namespace": "kafka",
    "strimzi_cluster_name": "kaspar",
    "kafka_broker": ".*",
    "kafka_topic": ".+",
    "kafka_partition": ".*",
}
"""What Grafana puts in for a dashboard's variables when all is chosen."""

OF_A_MACHINE: Final = frozenset({"jvm", "container", "kubelet"})


@dataclass(frozen=True)
class Query:
    dashboard: str
    panel: str
    text: str

    @property
    def expression(self) -> str:
        return re.sub(r"\$(\w+)", lambda found: VARIABLES[found[1]], self.text)


def dashboards() -> dict[str, Any]:
    return {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}


def queries() -> list[Query]:
    return [
        Query(name, panel["title"], text)
        for name, dashboard in dashboards().items()
        for panel in dashboard["panels"]
        for text in panel["queries"]
    ]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    unless_missing(require_prometheus)
    with Cluster(brokers=2, metrics=True, overrides={"offsets.topic.num.partitions": "1"}) as cluster:
        produce_and_consume(cluster.bootstrap_servers)
        targets = [
            {"targets": [cluster.metrics_address(broker)], "labels": LABELS | pod_of(broker)}
            for broker in cluster.broker_ids
        ]
        jobs = [{"job_name": "kafka", "static_configs": targets}]
        folder = tmp_path_factory.mktemp("prometheus")
        with Prometheus(folder, rules={"groups": []}, jobs=jobs, interval="250ms") as running:
            # A rate needs two scrapes of each broker.
            scrapes = "min(count_over_time(kafka_server_kafkaserver_brokerstate[5m]))"
            wait_until(
                lambda: any(float(sample["value"][1]) >= 2 for sample in running.query(scrapes)), "two scrapes of each"
            )
            yield running


def pod_of(broker: int) -> dict[str, str]:
    pod = f"{VARIABLES['strimzi_cluster_name']}-kafka-{broker}"
    return {"kubernetes_pod_name": pod, "pod": pod}


def produce_and_consume(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", num_partitions=2, replication_factor=2)])["orders"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(20):
        producer.produce("orders", b"value", key=str(number).encode())
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    try:
        consumer.assign([TopicPartition("orders", partition, 0) for partition in range(2)])
        assert len(consumer.consume(20, 30)) == 20
    finally:
        consumer.close()


@pytest.mark.parametrize("query", queries(), ids=lambda query: f"{query.dashboard}: {query.panel}")
def test_a_query_has_data(prometheus: Prometheus, query: Query) -> None:
    assert prometheus.query(query.expression), query.expression


def test_three_dashboards_are_written_down_with_their_sources() -> None:
    assert len(dashboards()) >= 3
    for dashboard in dashboards().values():
        assert dashboard["source"]


def test_what_is_out_of_scope_is_not_a_brokers_or_gone_from_kafka() -> None:
    for dashboard in dashboards().values():
        for panel in dashboard["out_of_scope"]:
            names = re.findall(r"\b([a-z]+)_\w+(?=\{|$)", panel["query"])
            assert panel["why"]
            assert OF_A_MACHINE.intersection(names) or "does not have it any more" in panel["why"], panel
