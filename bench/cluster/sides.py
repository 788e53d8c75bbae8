"""The two clusters that are compared: three brokers each, on this machine, with their defaults and a few settings.

Kaspar's metadata is in one ZooKeeper server, which is measured with its brokers. Kafka's nodes are both brokers and
controllers (KRaft), each with the heap and the JVM flags of its own start script.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.clusters import ApacheKafkaCluster, BrokerCluster, OurCluster
from bench.sides import Role, kafka, kaspar

SETTINGS: Mapping[str, str] = {
    "log.segment.delete.delay.ms": "1000",  # so that the memory of a tmpfs is sufficient
    "auto.create.topics.enable": "false",
}


@dataclass(frozen=True, slots=True)
class ClusterSide:
    role: Role
    name: str
    title: str
    make: Callable[[Path], BrokerCluster]
    runtime: Callable[[], str]


def our_cluster() -> ClusterSide:
    one = kaspar()
    return ClusterSide(Role.CANDIDATE, one.name, one.title, _make_ours, lambda: f"{one.runtime()}; one ZooKeeper")


def kafka_cluster() -> ClusterSide:
    one = kafka()
    return ClusterSide(Role.REFERENCE, one.name, one.title, _make_kafkas, lambda: f"{one.runtime()}; KRaft")


def earlier_cluster(checkout: Path) -> ClusterSide:
    """Another checkout of Kaspar in Kafka's place, run by this one's Python, to find regressions."""
    if not (checkout / "src" / "kaspar").is_dir():
        raise FileNotFoundError(f"there is no checkout of Kaspar in {checkout}")

    def make(folder: Path) -> BrokerCluster:
        return OurCluster(folder, SETTINGS, checkout.resolve())

    return ClusterSide(Role.REFERENCE, "earlier", "Kaspar, the earlier checkout", make, kaspar().runtime)


def _make_ours(folder: Path) -> BrokerCluster:
    return OurCluster(folder, SETTINGS)


def _make_kafkas(folder: Path) -> BrokerCluster:
    return ApacheKafkaCluster(folder, SETTINGS)
