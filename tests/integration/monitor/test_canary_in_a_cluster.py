"""The canary of three brokers that are killed, restarted in turn, removed, and elected uncleanly."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import describe_topics
from kaspar.monitor.canary import CanaryReport, CanaryStatus
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java
from tests.integration.monitor.running_canary import DEFAULT_LATE_MS, NOTICED_S, RECOVERED_S, WINDOW_MS, RunningCanary
from tests.integration.monitor.test_canary import TOPIC, assert_nothing_is_wrong

BROKERS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needs_java()
    with Cluster(brokers=BROKERS, overrides={"zookeeper.session.timeout.ms": "2000"}) as cluster:
        yield cluster


def status_of(report: CanaryReport, leader: int) -> CanaryStatus | None:
    return next((each.status for each in report.partitions if each.leader == leader), None)


def test_each_broker_leads_a_partition_and_a_killed_one_gets_its_own_back(cluster: Cluster) -> None:
    with RunningCanary(cluster.bootstrap_servers) as canary:
        healthy = canary.wait_healthy(BROKERS)
        assert {each.leader for each in healthy.partitions} == set(cluster.broker_ids)
        cluster.kill(3)
        canary.wait(lambda report: status_of(report, 3) is None, "others lead its partition", RECOVERED_S)
        without = canary.report()
        assert len(without.partitions) == BROKERS
        cluster.start_broker(3)
        assert_nothing_is_wrong(canary.wait_healthy(BROKERS, since=without))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_rolling_restarts_under_load_are_no_fault(cluster: Cluster) -> None:
    """Clients are supposed to see none: no record is lost, doubled, refused or late, at any time."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    with RunningCanary(cluster.bootstrap_servers, late_ms=DEFAULT_LATE_MS) as canary:
        canary.wait_healthy(BROKERS)
        with canary.watched() as seen:
            for _ in range(3):
                for broker in cluster.broker_ids:
                    for _ in range(1_000):
                        producer.produce("load", value=b"x" * 1_000)
                    producer.flush(30)
                    before = canary.report()
                    cluster.restart(broker)
                    canary.wait_healthy(BROKERS, since=before)
        report = canary.report()
        assert_nothing_is_wrong(report)
        assert (report.counts.failed, report.counts.late) == (0, 0)
        assert seen == {CanaryStatus.OK}


@pytest.mark.long
def test_paused_broker_is_named_and_its_partition_moves(cluster: Cluster) -> None:
    with RunningCanary(cluster.bootstrap_servers) as canary:
        canary.wait_healthy(BROKERS)
        cluster.pause(2)
        try:
            paused = canary.wait(
                lambda report: status_of(report, 2) is CanaryStatus.UNAVAILABLE or status_of(report, 2) is None,
                "broker 2 is unavailable, or no longer leads",
                NOTICED_S,
            )
            canary.wait(
                lambda report: (
                    status_of(report, 2) is None
                    and all(each.status is not CanaryStatus.UNAVAILABLE for each in report.partitions)
                ),
                "others lead its partition",
                RECOVERED_S,
            )
        finally:
            cluster.resume(2)
        assert_nothing_is_wrong(canary.wait_healthy(BROKERS, since=paused))


@pytest.mark.long
def test_all_brokers_stopped_are_unavailable_and_return_with_nothing_lost(cluster: Cluster) -> None:
    with RunningCanary(cluster.bootstrap_servers) as canary:
        canary.wait_healthy(BROKERS)
        for broker in cluster.broker_ids:
            cluster.kill(broker)
        down = canary.wait(lambda report: report.status is CanaryStatus.UNAVAILABLE, "nothing is acknowledged")
        for broker in cluster.broker_ids:
            cluster.start_broker(broker, wait=False)
        cluster.wait_complete()
        assert_nothing_is_wrong(canary.wait_healthy(BROKERS, since=down))


@pytest.mark.long
def test_replicas_of_a_removed_broker_are_moved_and_it_gets_a_partition_when_it_returns(cluster: Cluster) -> None:
    with (
        RunningCanary(cluster.bootstrap_servers, removed_ms=1_000) as canary,
        Admin(cluster.bootstrap_servers) as admin,
    ):
        canary.wait_healthy(BROKERS)
        cluster.stop_broker(3)
        canary.wait(lambda report: 3 not in replicas(admin), "its replicas are moved", 3 * RECOVERED_S)
        moved = canary.wait(
            lambda report: {each.leader for each in report.partitions} == {1, 2}, "each other broker leads", RECOVERED_S
        )
        cluster.start_broker(3)
        back = canary.wait_healthy(BROKERS, since=moved)
        assert_nothing_is_wrong(back)
        canary.wait(lambda report: replicas(admin) == {1, 2, 3}, "it has replicas again", RECOVERED_S)


def replicas(admin: Admin) -> set[int]:
    described = describe_topics(admin, [TOPIC])[TOPIC]
    assert not isinstance(described, Exception)
    return {broker for partition in described.partitions for broker in partition.replicas}


@pytest.mark.long
def test_unclean_election_loses_records_that_are_counted() -> None:
    needs_java()
    overrides = {"zookeeper.session.timeout.ms": "2000", "unclean.leader.election.enable": "true"}
    with (
        Cluster(brokers=2, overrides={**overrides, "min.insync.replicas": "1"}) as cluster,
        RunningCanary(cluster.bootstrap_servers) as canary,
    ):
        canary.wait_healthy(2)
        cluster.kill(2)
        alone = canary.wait(lambda report: status_of(report, 2) is None, "broker 1 leads all", RECOVERED_S)
        since = alone.counts.consumed
        canary.wait(lambda report: report.counts.consumed > since + 20, "records are on broker 1 only", RECOVERED_S)
        cluster.kill(1)
        cluster.start_broker(2)
        canary.wait(lambda report: report.counts.lost > 20, "the loss is counted", 3 * RECOVERED_S)
        assert canary.report().status >= CanaryStatus.LOSING


@pytest.mark.long
@pytest.mark.timeout(300)
def test_no_false_alarm_under_ordinary_load_for_minutes(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5})
    with RunningCanary(cluster.bootstrap_servers, late_ms=DEFAULT_LATE_MS) as canary:
        canary.wait_healthy(BROKERS)
        until = time.monotonic() + 120
        with canary.watched() as seen:
            while time.monotonic() < until and seen <= {CanaryStatus.OK}:
                for _ in range(2_000):
                    producer.produce("load", value=b"x" * 500)
                producer.flush(30)
        report = canary.report()
        assert seen == {CanaryStatus.OK}, report
        assert_nothing_is_wrong(report)
        assert (report.counts.failed, report.counts.late) == (0, 0)
        assert report.counts.produced > BROKERS * 1_000
        assert report.window_ms == WINDOW_MS
