"""Alerts on controllers, elections and replicas, each by its fault in a cluster that Prometheus scrapes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java
from tests.integration.monitor.alerting import covers, fires, observed, page_of, watching
from tests.peers.observed import wait_until
from tests.peers.prometheus import Prometheus

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


LAG_S = 4.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needs_java()
    overrides = {
        "zookeeper.session.timeout.ms": "15000",
        "replica.lag.time.max.ms": str(int(LAG_S * 1000)),
        "unclean.leader.election.enable": "true",
        "min.insync.replicas": "1",
    }
    with Cluster(brokers=2, metrics=True, overrides=overrides) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("t", 12, 2)])["t"].result(30)
        yield cluster


@pytest.fixture(scope="module")
def watched_cluster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    brokers = [cluster.metrics_address(broker) for broker in cluster.broker_ids]
    with watching(tmp_path_factory.mktemp("prometheus"), brokers=brokers) as prometheus:
        wait_until(lambda: len(prometheus.query("up == 1")) == len(brokers), "the brokers are scraped")
        yield prometheus


@covers("KasparNoController")
def test_metadata_store_that_hangs_leaves_the_cluster_without_a_controller(
    cluster: Cluster, watched_cluster: Prometheus
) -> None:
    cluster.pause_zookeeper()
    try:
        fires(watched_cluster, ["KasparNoController"])
    finally:
        cluster.resume_zookeeper()
    watched_cluster.wait_quiet(["KasparNoController", "KasparSeveralControllers"])


@covers("KasparIsrShrinks", "KasparProduceSlow")
def test_follower_that_pauses_falls_out_of_sync_and_slows_producers(
    cluster: Cluster, watched_cluster: Prometheus
) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    follower = next(broker for broker in cluster.broker_ids if broker != cluster.controller_id())

    def write() -> None:
        for number in range(12):
            producer.produce("t", value=b"x", partition=number)
        producer.poll(0)

    cluster.pause(follower)
    try:
        fires(watched_cluster, ["KasparIsrShrinks", "KasparProduceSlow"], write)
    finally:
        cluster.resume(follower)
    producer.flush(30)


@covers("KasparBrokerFenced", "KasparUncleanElection")
def test_unclean_election(cluster: Cluster, watched_cluster: Prometheus) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    cluster.kill(2)
    fires(watched_cluster, ["KasparBrokerFenced"])
    for number in range(12):
        producer.produce("t", value=b"x", partition=number)
    producer.flush(30)
    cluster.kill(1)
    cluster.start_broker(2)
    fires(watched_cluster, ["KasparUncleanElection"])
    cluster.start_broker(1)


@covers("KasparSeveralControllers")
def test_two_clusters_in_place_of_one_are_several_controllers(tmp_path: Path) -> None:
    with observed(tmp_path / "one") as one, observed(tmp_path / "other") as other:
        pages = [page_of(one), page_of(other)]
        with watching(tmp_path / "prometheus", brokers=pages) as prometheus:
            fires(prometheus, ["KasparSeveralControllers"])
