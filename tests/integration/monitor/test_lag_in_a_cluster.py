"""Rounds while one of three brokers is lost and returns."""

import time

import pytest
from confluent_kafka import Producer

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java
from tests.integration.monitor.lag_rounds import DrivenMonitor

GROUPS = 30
LONGEST_ROUND_S = 10.0
RECOVERED_S = 60.0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_groups_of_a_lost_broker_are_stale_until_others_coordinate_them() -> None:
    """`safe` has three replicas; the partitions of `alone` have one, on each broker."""
    needs_java()
    overrides = {"zookeeper.session.timeout.ms": "2000", "offsets.topic.num.partitions": "12"}
    with Cluster(brokers=3, overrides=overrides) as cluster, Admin(cluster.bootstrap_servers) as admin:
        replicas = [(broker,) for broker in cluster.broker_ids]
        create_topics(admin, [NewTopic("safe", 3, 3), NewTopic("alone", assignments=replicas)])
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        for topic in ("safe", "alone"):
            for partition in range(3):
                producer.produce(topic, b"value", partition=partition)
        assert producer.flush(30) == 0
        for number in range(GROUPS):
            offsets = {TopicPartition(topic, each): 0 for topic in ("safe", "alone") for each in range(3)}
            alter_group_offsets(admin, f"group-{number}", offsets)
        with DrivenMonitor(cluster.bootstrap_servers) as monitor:
            assert monitor.round()
            assert len(monitor.monitor.lag.groups()) == GROUPS
            assert not any(group.is_stale for group in monitor.monitor.lag.groups().values())

            cluster.kill(3)
            started = time.monotonic()
            monitor.round()
            assert time.monotonic() - started < LONGEST_ROUND_S
            groups = monitor.monitor.lag.groups()
            assert [group.total_lag for group in groups.values()] == [6] * GROUPS
            assert any(group.is_stale for group in groups.values())

            until = time.monotonic() + RECOVERED_S
            while (report := monitor.monitor.lag.last_round) is None or set(report.problems) != {"partition alone-2"}:
                assert time.monotonic() < until, report
                monitor.round()
            assert monitor.look_at_cluster()
            snapshot = monitor.monitor.cluster
            assert snapshot is not None
            assert [each.broker_id for each in snapshot.brokers] == [1, 2]
            assert snapshot.offline == (TopicPartition("alone", 2),)
            assert {where.topic for where in snapshot.under_replicated} >= {"safe"}

            cluster.start_broker(3)
            while any(group.is_stale for group in monitor.monitor.lag.groups().values()):
                assert time.monotonic() < until + RECOVERED_S
                monitor.round()
            assert [group.total_lag for group in monitor.monitor.lag.groups().values()] == [6] * GROUPS
