"""Faults that are made in a real cluster of three brokers, found, and mended by the command of the finding."""

from collections.abc import Iterator

import pytest

from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin, raise_first
from kaspar.client.admin.topics import describe_topics_by_metadata
from kaspar.monitor.doctor import Access, Doctor, findings
from kaspar.monitor.doctor.observing.pages import PageAddress
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java
from tests.integration.monitor.doctor.mending import examine, found, run, the_only, worrying
from tests.peers.observed import wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needs_java()
    overrides = {
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
        "auto.leader.rebalance.enable": "false",
        "zookeeper.session.timeout.ms": "2000",  # how soon a killed broker is known to be gone
    }
    with Cluster(brokers=3, overrides=overrides, metrics=True) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(cluster.bootstrap_servers) as session:
        raise_first(create_topics(session, [NewTopic("orders", 6)]).values())
        yield session


def codes(admin: Admin, cluster: Cluster) -> set[str]:
    return {each.code for each in worrying(examine(admin, cluster.bootstrap_servers))}


def test_a_healthy_cluster_has_no_problems_and_no_warnings(cluster: Cluster, admin: Admin) -> None:
    """First of its module: before any fault is made."""
    pages = {broker: PageAddress(f"http://{cluster.metrics_address(broker)}/metrics") for broker in cluster.broker_ids}
    doctor = Doctor(Access(cluster.bootstrap_servers), pages)
    seen = [doctor.look(admin), doctor.look(admin)]
    assert worrying(list(findings(seen))) == []
    assert seen[-1].missing == ()
    assert set(seen[-1].pages) == set(seen[-1].clocks) == {1, 2, 3}


def test_a_topic_with_one_replica_gets_more(cluster: Cluster, admin: Admin) -> None:
    lone = NewTopic("lone", assignments=((2,), (3,)))
    raise_first(create_topics(admin, [lone]).values())
    one_replica = the_only(found(admin, cluster.bootstrap_servers, "one-replica"))
    assert one_replica.resource == "topic lone"
    run(one_replica)

    def is_complete() -> bool:
        topic = describe_topics_by_metadata(admin, ["lone"])["lone"]
        return [len(each.isr) for each in topic.partitions] == [3, 3]  # type: ignore[union-attr]

    wait_until(is_complete, "both partitions have three replicas in sync")
    assert [each.replicas[0] for each in describe_topics_by_metadata(admin, ["lone"])["lone"].partitions] == [2, 3]  # type: ignore[union-attr]
    assert codes(admin, cluster) == set()


def test_settings_that_lose_records_are_mended(cluster: Cluster, admin: Admin) -> None:
    settings = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    raise_first(create_topics(admin, [NewTopic("careless", 3, configs=settings)]).values())
    warnings = worrying(examine(admin, cluster.bootstrap_servers))
    assert {each.code for each in warnings} == {"min-isr-one", "unclean-leader-election"}
    for each in warnings:
        run(each)
    assert codes(admin, cluster) == set()


def test_a_broker_that_was_killed_is_found_and_its_leaders_return_when_it_is_back(
    cluster: Cluster, admin: Admin
) -> None:
    servers = cluster.bootstrap_servers
    cluster.kill(2)
    wait_until(lambda: "broker-down" in codes(admin, cluster), "the cluster knows that the broker is gone")
    wait_until(
        lambda: (
            the_only(found(admin, servers, "broker-down")).resource == "broker 2"
            and [each.resource for each in found(admin, servers, "under-replicated")] == ["broker 2"]
        ),
        "its replicas are out of sync",
    )
    cluster.start_broker(2)
    wait_until(lambda: codes(admin, cluster) == set(), "all replicas are in sync again")
    run(the_only(found(admin, servers, "not-preferred-leaders")))
    wait_until(lambda: not found(admin, servers, "not-preferred-leaders"), "the preferred leaders lead")


@pytest.mark.long
def test_a_broker_that_hangs_is_found_within_bounds(cluster: Cluster, admin: Admin) -> None:
    cluster.pause(3)
    try:
        silent = found(admin, cluster.bootstrap_servers, "broker-silent")
        assert [each.resource for each in silent] == ["broker 3"]
    finally:
        cluster.resume(3)
    wait_until(lambda: codes(admin, cluster) == set(), "the broker serves again")
