"""How evenly leaders, replicas and bytes are spread over the brokers."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kaspar.base.sentences import bytes_text, counted, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Observation

SKEW_RATIO: Final = 1.5
SKEW_COUNT: Final = 10
"""A broker is skewed if it exceeds the mean by half and by at least this number: small clusters are never skewed."""
SKEW_BYTES: Final = 10 << 30
NOT_PREFERRED_RATIO: Final = 0.1
"""Kafka's leader.imbalance.per.broker.percentage."""
MOST_REPLICAS: Final = 4000
"""Per broker, as recommended by Kafka."""


@check(
    "not-preferred-leaders",
    Severity.NOTE,
    title="Partitions are not led by their preferred leaders",
    why="After a broker restarts, other brokers keep leading its partitions and carry its load. With "
    "auto.leader.rebalance.enable the controller moves leadership back within minutes.",
    remedy="Elect the preferred leaders.",
)
def not_preferred_leaders(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    partitions = [(where, each) for where, each in last.partitions() if each.leader >= 0 and each.replicas]
    moved = [where for where, each in partitions if each.leader != each.replicas[0] and each.replicas[0] in each.isr]
    if partitions and len(moved) / len(partitions) > NOT_PREFERRED_RATIO:
        detail = f"{len(moved)} of {counted(len(partitions), 'partition')} have another leader: {some(moved)}."
        yield Fault("partitions", detail, _elect(looks))


def _elect(looks: Looks) -> str:
    return looks.access.kafka("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")


@check(
    "skewed-leaders",
    Severity.WARNING,
    title="Leaders are unevenly spread",
    why="Leaders serve producers and consumers: one broker is busy while others are idle.",
    remedy="Elect the preferred leaders; if those are uneven too, spread the replicas.",
)
def skewed_leaders(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    leaders = Counter(each.leader for _, each in last.partitions() if each.leader >= 0)
    preferred = Counter(each.replicas[0] for _, each in last.partitions() if each.replicas)
    for broker_id, count, mean in _above(last, leaders):
        is_by_plan = any(each == broker_id for each, _, _ in _above(last, preferred))
        detail = f"Broker {broker_id} leads {counted(count, 'partition')}; the mean is {mean:.0f}."
        yield Fault(f"broker {broker_id}", detail, looks.access.plan("spread") if is_by_plan else _elect(looks))


@check(
    "skewed-replicas",
    Severity.WARNING,
    title="Replicas are unevenly spread",
    why="One broker stores and replicates more than the others, and takes longer to recover after a crash.",
    remedy="Spread the replicas. Brokers added later are not given existing partitions automatically.",
)
def skewed_replicas(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    replicas = Counter(broker_id for _, each in last.partitions() for broker_id in each.replicas)
    for broker_id, count, mean in _above(last, replicas):
        detail = f"Broker {broker_id} has {counted(count, 'replica')}; the mean is {mean:.0f}."
        yield Fault(f"broker {broker_id}", detail, looks.access.plan("spread"))


def _above(observation: Observation, counts: Mapping[int, int]) -> list[tuple[int, int, float]]:
    """The brokers that are clearly above the mean of all live brokers, with their counts and the mean."""
    live = observation.live_brokers
    if len(live) < 2:
        return []
    mean = sum(counts.get(broker_id, 0) for broker_id in live) / len(live)
    return [
        (broker_id, count, mean)
        for broker_id in live
        if (count := counts.get(broker_id, 0)) > mean * SKEW_RATIO and count >= mean + SKEW_COUNT
    ]


@check(
    "skewed-disks",
    Severity.WARNING,
    title="Disk usage is uneven",
    why="One broker's disk will fill up long before the others.",
    remedy="Move large partitions to the other brokers with kafka-reassign-partitions.",
)
def skewed_disks(looks: Looks) -> Iterator[Fault]:
    sizes = {broker_id: sum(each.size for each in dirs) for broker_id, dirs in looks.last.log_dirs.items()}
    if len(sizes) < 2:
        return
    mean = sum(sizes.values()) / len(sizes)
    for broker_id, size in sorted(sizes.items()):
        if size > mean * SKEW_RATIO and size - mean > SKEW_BYTES:
            detail = f"Broker {broker_id} stores {bytes_text(size)}; the mean is {bytes_text(mean)}."
            yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("broker", "log-dirs"))


@check(
    "many-partitions",
    Severity.WARNING,
    title="A broker has very many partitions",
    why="Failover, restarts and metadata requests take longer with every partition.",
    remedy="Delete unused topics, create topics with fewer partitions, or add brokers.",
)
def many_partitions(looks: Looks) -> Iterator[Fault]:
    replicas = Counter(broker_id for _, each in looks.last.partitions() for broker_id in each.replicas)
    for broker_id, count in sorted(replicas.items()):
        if count > MOST_REPLICAS:
            detail = f"Broker {broker_id} has {count:,} replicas; up to {MOST_REPLICAS:,} are usual."
            yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("topic", "list"))
