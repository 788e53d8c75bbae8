"""A secured cluster (`kaspar up --secure`) under consume-transform-produce and kill -9 of its brokers: clients that log
in over TLS, with ACLs for just what they do, see every record once, and brokers know each other by certificates.

Afterwards the checker of histories goes through all that happened (`tests/chaos/history`).
"""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kaspar.testing import Cluster
from tests.chaos.actors.membership import COOPERATIVE
from tests.chaos.history import check
from tests.chaos.pipeline import COORDINATION, PIPELINE, PipelineRun
from tests.chaos.replicated_topic import SECONDS, admin_security
from tests.integration.cluster.up import needs_java
from tests.peers.observed import wait_until

PARTITIONS = 3
SETTINGS = {
    **COORDINATION,
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "3000",
    "leader.imbalance.check.interval.seconds": "2",
}
PATIENCE_S = 90.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    needs_java()
    with Cluster(brokers=3, data_dir=tmp_path / "cluster", overrides=SETTINGS, secure=True) as running:
        yield running


@pytest.mark.timeout(3600)
def test_every_record_once_over_kills_of_a_secured_cluster(
    cluster: Cluster, rng: random.Random, rounds: int, tmp_path: Path
) -> None:
    admin = AdminClient({**cluster.client_settings("admin"), "log_level": 0})

    def leader() -> int:
        return admin.list_topics(PIPELINE.source, timeout=30).topics[PIPELINE.source].partitions[0].leader

    with PipelineRun(
        cluster.bootstrap_servers,
        tmp_path / "actors",
        rng,
        COOPERATIVE,
        partitions=PARTITIONS,
        processors=2,
        feeders=1,
        client={**cluster.client_settings("client")},
        security=admin_security(cluster),
        leaders_change=True,
    ) as run:
        for number in range(max(2, rounds // 3)):
            run.wait_for_progress(PATIENCE_S)
            wait_until(lambda: leader() > 0, "there is a leader", seconds=SECONDS)
            killed = cluster.controller_id() if number % 2 else leader()
            cluster.kill(killed)
            threading.Event().wait(rng.uniform(0.0, 1.0))
            cluster.start_broker(killed)
        run.wait_for_progress(PATIENCE_S)
        history = run.finish()
    assert check(history) == []
    for broker in cluster.broker_ids:
        decisions = cluster.broker_data(broker).with_name("logs") / "kafka-authorizer.log"
        log = cluster.log_file(broker).read_text() + decisions.read_text()
        assert "denied principal" not in log, "its ACLs are all that a client needs"
        assert "failed to authenticate" not in log
        assert not [user for user in ("admin", "client") if cluster.client_settings(user)["sasl.password"] in log]
