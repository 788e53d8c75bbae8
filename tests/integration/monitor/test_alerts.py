"""Alerts and dashboards on a running cluster: a broker is killed, and everything that follows from it fires."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.monitor.rules.catalogue import ALERTS
from kaspar.monitor.rules.dashboard import Dashboard
from kaspar.monitor.rules.dashboards import DASHBOARDS
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java
from tests.integration.monitor.alerting import REPOSITORY, covers, probes, running_monitor, watching
from tests.peers.observed import wait_until
from tests.peers.prometheus import BlackboxExporter, Prometheus

RECORDS = 100
OVERRIDES = {
    "zookeeper.session.timeout.ms": "2000",
    "controlled.shutdown.enable": "false",  # a partition with one replica cannot be handed over: stopping would wait
}
OF_A_BUSY_MACHINE = {"KasparEventLoopStalled", "KasparDiskFullSoon", "KasparProduceSlow"}
"""Other tests run beside this one, and write to the same disk: within ten seconds much seems to change."""
OF_A_KILLED_BROKER = {
    "KasparBrokerDown",
    "KasparBrokerFenced",
    "KasparOfflinePartitions",
    "KasparUnderReplicatedPartitions",
    "KasparUnderMinIsrPartitions",
}


@dataclass(frozen=True, slots=True)
class Stage:
    cluster: Cluster
    prometheus: Prometheus


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    needs_java()
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        Cluster(brokers=3, metrics=True, overrides=OVERRIDES) as cluster,
        running_monitor(cluster.bootstrap_servers) as monitor,
        BlackboxExporter(folder, REPOSITORY / "deploy/prometheus/blackbox.yml") as blackbox,
    ):
        brokers = [cluster.metrics_address(broker) for broker in cluster.broker_ids]
        probed = probes(blackbox, {f"http://{monitor}/burrow/admin": "http"})
        with watching(folder, brokers=brokers, monitor=monitor, more=[probed]) as prometheus:
            create_topics(cluster)  # Prometheus takes five seconds to find its targets
            read_something(cluster)
            yield Stage(cluster, prometheus)


def create_topics(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topics = [
        NewTopic("one-replica", 3, 1),
        NewTopic("all-in-sync", 3, 3, config={"min.insync.replicas": "3"}),
    ]
    for created in admin.create_topics(topics).values():
        created.result(30)


def read_something(cluster: Cluster) -> None:
    """So that there are requests, a group, and its lag."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce("all-in-sync", value=str(number).encode())
    producer.flush(30)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe(["all-in-sync"])
    read = 0
    while read < RECORDS:
        found = consumer.consume(RECORDS, timeout=10)
        assert found
        read += len(found)
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)
def test_every_query_of_a_dashboard_has_data(stage: Stage, dashboard: Dashboard) -> None:
    for query in dashboard.queries:
        wait_until(partial(has_data, stage.prometheus, query), f"data of {query}")


def has_data(prometheus: Prometheus, query: str) -> bool:
    for variable in ("$instance", "$topic", "$group"):
        query = query.replace(variable, ".*")
    return bool(prometheus.query(query))


def test_healthy_cluster_is_quiet(stage: Stage) -> None:
    """In the end: rules that do not wait also fire while Prometheus has scraped a part of the brokers only."""
    wait_until(lambda: len(stage.prometheus.query("up == 1")) == 5, "everything is scraped")
    stage.prometheus.wait_quiet(ALERTS.keys() - OF_A_BUSY_MACHINE)


@covers(*OF_A_KILLED_BROKER)
def test_killed_broker_fires_what_follows_from_it_and_a_restart_ends_that(stage: Stage) -> None:
    stage.cluster.kill(3)
    stage.prometheus.wait_firing(OF_A_KILLED_BROKER)
    (down,) = [each for each in stage.prometheus.firing() if each["labels"]["alertname"] == "KasparBrokerDown"]
    assert down["labels"]["instance"] == stage.cluster.metrics_address(3)
    assert down["annotations"]["summary"] == f"Broker {stage.cluster.metrics_address(3)} does not respond"
    stage.cluster.start_broker(3)
    stage.prometheus.wait_quiet(OF_A_KILLED_BROKER)
