"""Brokers of a cluster are killed, paused and stopped, and lose their store, under load: nothing acknowledged by all
in-sync replicas is lost, no offset names two records, and in the end every replica has the same bytes.

With `--secured` the brokers and their clients know each other by certificates and passwords.
"""

import random
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from kaspar.testing import Cluster
from tests.chaos.load import IDEMPOTENT, Producers
from tests.chaos.replicated_topic import PARTITIONS, ReplicatedTopic, admin_security

BROKERS = (1, 2, 3)
SETTINGS = {
    "zookeeper.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "leader.imbalance.check.interval.seconds": "2",
}
SHORTER_AND_LONGER_THAN_A_SESSION_S = (0.5, 6.0)


class Target(ReplicatedTopic):
    """What the faults are for."""

    def __init__(self, cluster: Cluster, name: str, rng: random.Random) -> None:
        super().__init__(
            cluster.bootstrap_servers,
            cluster.broker_data,
            name,
            client=cluster.client_settings("admin"),
            security=admin_security(cluster),
        )
        self.cluster = cluster
        self.rng = rng

    def pause(self, *seconds: float) -> None:
        threading.Event().wait(self.rng.choice(seconds) if seconds else self.rng.uniform(0.0, 1.0))


Fault: TypeAlias = Callable[[Target], None]


def kill_leader(target: Target) -> None:
    _kill(target, target.leader(target.rng.randrange(PARTITIONS)))


def kill_controller(target: Target) -> None:
    _kill(target, target.cluster.controller_id())


def kill_two(target: Target) -> None:
    """With `min.insync.replicas` 2 nothing is acknowledged until one of them is back."""
    first, second = target.rng.sample(BROKERS, 2)
    target.cluster.kill(first)
    _kill(target, second)
    target.cluster.start_broker(first)


def stop_one(target: Target) -> None:
    broker = target.rng.choice(BROKERS)
    target.cluster.stop_broker(broker)
    target.cluster.start_broker(broker)


def pause_leader(target: Target) -> None:
    """When it goes on, it does not know whether it still leads."""
    leader = target.leader(target.rng.randrange(PARTITIONS))
    target.cluster.pause(leader)
    target.pause(*SHORTER_AND_LONGER_THAN_A_SESSION_S)
    target.cluster.resume(leader)


def kill_zookeeper(target: Target) -> None:
    target.cluster.kill_zookeeper()
    target.pause()
    target.cluster.start_zookeeper()


def _kill(target: Target, broker: int) -> None:
    target.cluster.kill(broker)
    target.pause()
    target.cluster.start_broker(broker)


FAULTS: tuple[Fault, ...] = (kill_leader, kill_controller, kill_two, stop_one, pause_leader, kill_zookeeper)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    secure = request.config.getoption("--secured")
    with Cluster(brokers=len(BROKERS), data_dir=folder, overrides=SETTINGS, secure=secure) as running:
        yield running


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_nothing_committed_is_lost(cluster: Cluster, fault: Fault, rng: random.Random, rounds: int) -> None:
    target = Target(cluster, f"orders-{fault.__name__}", rng)
    with Producers(
        cluster.bootstrap_servers, target.name, PARTITIONS, kinds=[IDEMPOTENT], client=cluster.client_settings()
    ) as producers:
        for _ in range(max(1, rounds // 3)):
            producers.wait_for_acknowledgements()
            fault(target)
        producers.wait_for_acknowledgements()
    assert not producers.problems, producers.problems[:5]
    target.check(producers.ledger)
