"""A leader, a follower, the controller: stopped, killed or restarted under load, as in Kafka's system tests. Nothing
acknowledged is lost or doubled, and writing goes on while one of three brokers is away.
"""

import enum
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.reassignments import alter_reassignments, list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.testing import Cluster
from tests.chaos.load import IDEMPOTENT, Producers
from tests.chaos.replicated_topic import PARTITIONS, ReplicatedTopic
from tests.peers.background import Background
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

SECONDS = 60.0
BOUNCES = 3
A_METADATA_REFRESH_S = 2.0  # of a client that retries, with some room for a busy machine
LOOK_EVERY_S = 0.02


class Role(enum.StrEnum):
    LEADER = "leader"
    FOLLOWER = "follower"
    CONTROLLER = "controller"


class Ending(enum.StrEnum):
    STOP = "clean stop"
    KILL = "kill -9"
    BOUNCE = "bounces"


IN_EVERY_RUN = ((Role.LEADER, Ending.KILL), (Role.CONTROLLER, Ending.STOP))
CASES = [
    pytest.param(
        role, ending, id=f"{role}, {ending}", marks=[] if (role, ending) in IN_EVERY_RUN else [pytest.mark.long]
    )
    for role in Role
    for ending in Ending
]


def replicated_topic(cluster: Cluster, name: str, *, replicas: int = 3) -> ReplicatedTopic:
    return ReplicatedTopic(cluster.bootstrap_servers, cluster.broker_data, name, replicas=replicas)


def load(topic: ReplicatedTopic) -> Producers:
    return Producers(topic.bootstrap, topic.name, PARTITIONS, kinds=[IDEMPOTENT])


def wait_for_every_partition(producers: Producers) -> None:
    """Each has a record acknowledged that was not before."""

    def ends() -> list[int]:
        acknowledged = list(producers.ledger.acknowledged)
        return [max((offset for where, offset in acknowledged if where == number), default=-1) for number in numbers]

    numbers = range(PARTITIONS)
    before = ends()
    wait_until(
        lambda: all(now > then for now, then in zip(ends(), before, strict=True)),
        "every partition takes records",
        seconds=SECONDS,
    )


def victim_of(cluster: Cluster, topic: ReplicatedTopic, role: Role) -> int:
    """Leader and follower of the first partition. The follower is not the controller."""
    leader, controller = topic.leader(0), cluster.controller_id()
    match role:
        case Role.LEADER:
            return leader
        case Role.CONTROLLER:
            return controller
        case Role.FOLLOWER:
            return next(each for each in cluster.broker_ids if each not in (leader, controller))


@pytest.mark.parametrize(("role", "ending"), CASES)
def test_nothing_is_lost_when_a_broker_fails(cluster: Cluster, role: Role, ending: Ending) -> None:
    topic = replicated_topic(cluster, f"orders-{role.name}-{ending.name}")
    with load(topic) as producers:
        wait_for_every_partition(producers)
        victim = victim_of(cluster, topic, role)
        if ending is Ending.BOUNCE:
            for _ in range(BOUNCES):
                cluster.restart(victim)
        else:
            if ending is Ending.KILL:
                cluster.kill(victim)
            else:
                cluster.stop_broker(victim)
            wait_for_every_partition(producers)
            if role is Role.CONTROLLER:
                assert cluster.controller_id() != victim
                create_topic(cluster, f"while-{victim}-is-away-{ending.name}")
            cluster.start_broker(victim)
        wait_for_every_partition(producers)
    assert not producers.problems, producers.problems[:5]
    topic.check(producers.ledger)


def create_topic(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 2)])[name].result(SECONDS)


# -- rolling restarts --------------------------------------------------------------------------------------------------


class LeaderWatch(Background):
    """A thread that asks every broker who leads a topic, and notes the longest time for which one named no leader."""

    def __init__(self, cluster: Cluster, topic: ReplicatedTopic) -> None:
        super().__init__()
        self.longest_s = 0.0
        self.looks = 0
        self._name = topic.name
        self._ports = [cluster.port(broker) for broker in cluster.broker_ids]
        self._since: dict[tuple[int, int], float] = {}

    def _work(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            for port in self._ports:
                try:
                    with RawClient(port, timeout=5) as client:
                        (found,) = client.metadata(self._name).topics
                except OSError:  # it is the one that is restarted
                    self._since = {where: since for where, since in self._since.items() if where[0] != port}
                    continue
                self.looks += 1
                for each in found.partitions:
                    self._note((port, each.partition_index), each.leader_id)

    def _note(self, where: tuple[int, int], leader: int) -> None:
        now = time.monotonic()
        if leader < 0:
            self.longest_s = max(self.longest_s, now - self._since.setdefault(where, now))
        else:
            self._since.pop(where, None)


def test_rolling_restart_fails_no_write_and_leaves_no_partition_without_a_leader(cluster: Cluster) -> None:
    topic = replicated_topic(cluster, "rolling")
    with load(topic) as producers, LeaderWatch(cluster, topic) as watch:
        for broker in cluster.broker_ids:
            wait_until(topic.is_in_sync, "every replica is in sync", seconds=SECONDS)
            wait_for_every_partition(producers)
            cluster.restart(broker)
        wait_for_every_partition(producers)
    assert not producers.problems, producers.problems[:5]
    topic.check(producers.ledger)
    assert watch.looks > 0
    print(f"a partition was without a leader for {watch.longest_s:.2f} s at most")
    assert watch.longest_s < A_METADATA_REFRESH_S


# -- reassignments -----------------------------------------------------------------------------------------------------


def replicas_of(topic: ReplicatedTopic) -> dict[int, list[int]]:
    return {number: list(each.replicas) for number, each in topic.partitions().items()}


@pytest.mark.parametrize(
    "ending", [pytest.param(Ending.KILL, id="kill -9"), pytest.param(Ending.STOP, id="stop", marks=pytest.mark.long)]
)
def test_partitions_move_while_brokers_are_restarted(cluster: Cluster, ending: Ending) -> None:
    """Each partition moves to the next pair of brokers, three times, and each broker goes down once meanwhile."""
    topic = replicated_topic(cluster, f"moved-{ending.name}", replicas=2)
    brokers = cluster.broker_ids
    with load(topic) as producers, Admin(cluster.bootstrap_servers) as admin:
        for turn, broker in enumerate(brokers, start=1):
            wait_for_every_partition(producers)
            targets = {
                TopicPartition(topic.name, number): (brokers[(number + turn) % 3], brokers[(number + turn + 1) % 3])
                for number in range(PARTITIONS)
            }
            assert alter_reassignments(admin, targets) == {}
            if ending is Ending.KILL:
                cluster.kill(broker)
                cluster.start_broker(broker)
            else:
                cluster.restart(broker)
            wait_until(lambda: not list_reassignments(admin), "all partitions have moved", seconds=SECONDS)
            expected = {where.partition: list(replicas) for where, replicas in targets.items()}
            wait_until(
                lambda expected=expected: replicas_of(topic) == expected,  # type: ignore[misc]
                "any broker that is asked knows it",
                seconds=SECONDS,
            )
        wait_for_every_partition(producers)
    assert not producers.problems, producers.problems[:5]
    topic.check(producers.ledger)
