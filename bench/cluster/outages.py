"""A broker ends while a librdkafka producer sends: how long nothing is acknowledged, and no topic can be created."""

import itertools
import signal
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from bench import programs
from bench.bench import Load
from bench.cluster.bench import ClusterBench, ClusterCase
from bench.cluster.clusters import BROKERS, BrokerCluster
from bench.cluster.sides import ClusterSide
from bench.cluster.topics import ClusterTopics, create_topics
from bench.rows import Better, Row

_SECTION = "A broker ends"
_GAP_GOAL_SECONDS = 1.0
_RATE = 300
_PARTITIONS = 3
_RETRY_SECONDS = 0.01
_CREATION_LIMIT_SECONDS = 90.0
_numbers = itertools.count(1)


class Outage(ClusterCase):
    """Ends the broker that leads one of three partitions, and restarts it afterwards."""

    number: signal.Signals

    def warm_up(self, bench: ClusterBench, side: ClusterSide) -> None:
        """Only start the cluster, because a round would end one of its brokers."""
        bench.warm_cluster(side)

    def measure(self, bench: ClusterBench, side: ClusterSide) -> Mapping[str, float]:
        cluster = bench.warm_cluster(side)
        topics = ClusterTopics(cluster)
        topic = topics.create(_PARTITIONS)
        controller = cluster.controller_id()
        victim = self.victim(controller, topics.leaders(topic))
        try:
            values = self.end(bench, cluster, topic, victim)
            cluster.restart_ended(victim)
            topics.wait_in_sync(topic, _PARTITIONS)
            topics.delete(topic)
        except BaseException:
            bench.drop_warm_cluster(side)
            raise
        return values

    def victim(self, controller: int, leaders: Mapping[int, int]) -> int:
        """A leader that is not the controller."""
        return next(leader for leader in leaders.values() if leader != controller)

    def end(self, bench: ClusterBench, cluster: BrokerCluster, topic: str, victim: int) -> Mapping[str, float]:
        return {self.name: self.run(bench, cluster, topic, victim)["longest_gap"]}

    def run(self, bench: ClusterBench, cluster: BrokerCluster, topic: str, victim: int) -> Load:
        arguments = (cluster.bootstrap, topic, _PARTITIONS, _RATE, cluster.pid(victim), int(self.number))
        return bench.run_load(cluster, bench.tools.client, "outage", *arguments)


class LeaderKilled(Outage):
    number = signal.SIGKILL

    def __init__(self) -> None:
        title = "a leader is killed (-9): until its partition acknowledges again"
        row = Row("leader_killed", title, _SECTION, "s", Better.LESS, _GAP_GOAL_SECONDS, goal_is_value=True)
        super().__init__("leader_killed", (row,))


class ControlledShutdown(Outage):
    number = signal.SIGTERM

    def __init__(self) -> None:
        title = "a leader is stopped: longest time without an acknowledgement of a partition"
        row = Row("controlled_shutdown", title, _SECTION, "s", Better.LESS, 0.7)
        super().__init__("controlled_shutdown", (row,))


class ControllerKilled(Outage):
    number = signal.SIGKILL

    def __init__(self) -> None:
        gap = "the controller is killed (-9): until every partition acknowledges again"
        creation = "the controller is killed (-9): until a topic is created"
        rows = (
            Row("controller_killed", gap, _SECTION, "s", Better.LESS, _GAP_GOAL_SECONDS, goal_is_value=True),
            Row("controller_killed_topic", creation, _SECTION, "s", Better.LESS, 0.7),
        )
        super().__init__("controller_killed", rows)

    def victim(self, controller: int, leaders: Mapping[int, int]) -> int:
        return controller

    def end(self, bench: ClusterBench, cluster: BrokerCluster, topic: str, victim: int) -> Mapping[str, float]:
        with ThreadPoolExecutor(1) as pool:
            creation = pool.submit(_create_after_end, cluster, victim)
            load = self.run(bench, cluster, topic, victim)
            created_at = creation.result()
        return {
            "controller_killed": load["longest_gap"],
            "controller_killed_topic": created_at - load["signalled_at"],
        }


def _create_after_end(cluster: BrokerCluster, victim: int) -> float:
    """The time at which another broker has created a topic. Requests begin when the victim's port is closed."""
    limit = time.monotonic() + _CREATION_LIMIT_SECONDS
    while _listens(cluster, victim):
        if time.monotonic() > limit:
            raise programs.LoadError("the broker that was to be killed did not end")
        time.sleep(_RETRY_SECONDS)
    other = next(broker_id for broker_id in BROKERS if broker_id != victim)
    with cluster.client(other) as client:
        while True:
            try:
                create_topics(client, [f"after-outage-{next(_numbers)}"], 1)
            except programs.LoadError:
                if time.monotonic() > limit:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return time.monotonic()


def _listens(cluster: BrokerCluster, broker_id: int) -> bool:
    try:
        cluster.client(broker_id).close()
    except OSError:
        return False
    return True
