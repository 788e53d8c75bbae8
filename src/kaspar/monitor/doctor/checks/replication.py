"""Replicas: partitions that are offline or have too few in-sync replicas."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.base.sentences import counted, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Observation

CATCH_UP_S: Final = 30.0
"""A replica that gains nothing on its leader for this long is not catching up; the same as replica.lag.time.max.ms."""


@check(
    "offline-partitions",
    Severity.PROBLEM,
    title="Partitions are offline",
    why="They have no leader and can be neither read nor written.",
    remedy="Start the brokers that have their replicas. If those are lost for good, elect an out-of-sync replica "
    "with kafka-leader-election --election-type unclean: records that only the lost replicas had are lost.",
)
def offline_partitions(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    offline = [where for where, each in last.partitions() if each.leader < 0]
    if not offline:
        return
    brokers = sorted({broker for where, each in last.partitions() if each.leader < 0 for broker in each.replicas})
    detail = (
        f"{counted(len(offline), 'partition')} without a leader: {some(offline)}. Replicas: brokers {some(brokers)}."
    )
    yield Fault("partitions", detail, looks.access.start_broker())


@check(
    "under-min-isr",
    Severity.PROBLEM,
    title="Partitions have fewer in-sync replicas than min.insync.replicas",
    why="Producers with acks=all get NOT_ENOUGH_REPLICAS.",
    remedy="Bring the missing replicas back.",
)
def under_min_isr(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    found = []
    for where, each in last.partitions():
        wanted = last.number(where.topic, "min.insync.replicas")
        if each.leader >= 0 and wanted is not None and len(each.isr) < wanted <= len(each.replicas):
            found.append(where)
    if found:
        detail = f"{counted(len(found), 'partition')}: {some(found)}."
        yield Fault("partitions", detail, looks.access.start_broker())


@check(
    "min-isr-above-replicas",
    Severity.PROBLEM,
    title="min.insync.replicas is above the number of replicas",
    why="No write with acks=all can ever succeed.",
    remedy="Lower the setting, or add replicas.",
)
def min_isr_above_replicas(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    for topic in last.topics.values():
        wanted = last.number(topic.name, "min.insync.replicas")
        replicas = min((len(each.replicas) for each in topic.partitions), default=0)
        if wanted is not None and topic.partitions and wanted > replicas:
            yield Fault(
                f"topic {topic.name}",
                f"min.insync.replicas is {wanted}, and partitions have {counted(replicas, 'replica')}.",
                looks.access.kaspar("topic", "alter", topic.name, "--set", f"min.insync.replicas={replicas}"),
            )


@check(
    "under-replicated",
    Severity.PROBLEM,
    title="Partitions are under-replicated",
    why="They have fewer copies than they should. One more failure can make them unavailable, or lose records.",
    remedy="Start the missing broker; a replica that only fell behind catches up by itself.",
)
def under_replicated(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    live = set(last.live_brokers)
    stuck = {where for where, _ in _not_catching_up(looks)}
    for broker_id, partitions in sorted(_by_missing_replica(last).items()):
        left = [where for where in partitions if where not in stuck]
        if left:
            state = "is up and catching up" if broker_id in live else "is down"
            count = counted(len(left), "partition")
            detail = f"{count} without the replica of broker {broker_id}, which {state}: {some(left)}."
            command = looks.access.start_broker() if broker_id not in live else looks.access.kaspar("cluster", "health")
            yield Fault(f"broker {broker_id}", detail, command)


def _by_missing_replica(observation: Observation) -> dict[int, list[TopicPartition]]:
    """The partitions with an out-of-sync replica on each broker, except those with a reassignment in progress."""
    found: dict[int, list[TopicPartition]] = {}
    for where, each in observation.partitions():
        if len(each.isr) < len(each.replicas) and where not in observation.reassigning and each.leader >= 0:
            for broker_id in set(each.replicas) - set(each.isr):
                found.setdefault(broker_id, []).append(where)
    return found


@check(
    "replica-not-catching-up",
    Severity.PROBLEM,
    title="A replica does not catch up",
    why="Its broker is up, but it stays out of sync: it cannot become leader, and the partition has one copy fewer.",
    remedy="Check the broker's log and disk; replication quotas (follower.replication.throttled.rate) can also hold "
    "it back. Restarting the broker restarts its fetchers.",
)
def replica_not_catching_up(looks: Looks) -> Iterator[Fault]:
    found: dict[int, list[TopicPartition]] = {}
    for where, broker_id in _not_catching_up(looks):
        found.setdefault(broker_id, []).append(where)
    for broker_id, partitions in sorted(found.items()):
        detail = (
            f"Broker {broker_id} is up, and in {looks.span_s:.0f} s gained nothing on the leaders of "
            f"{counted(len(partitions), 'partition')}: {some(partitions)}."
        )
        yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("broker", "describe", str(broker_id)))


def _not_catching_up(looks: Looks) -> list[tuple[TopicPartition, int]]:
    if looks.span_s < CATCH_UP_S:
        return []
    missing = [_by_missing_replica(each) for each in looks.observations]
    live = set.intersection(*(set(each.live_brokers) for each in looks.observations))
    return [
        (where, broker_id)
        for broker_id, partitions in missing[-1].items()
        for where in partitions
        if broker_id in live
        and all(where in each.get(broker_id, ()) for each in missing)
        and _bytes_behind(looks.last, where, broker_id) >= _bytes_behind(looks.first, where, broker_id)
    ]


def _bytes_behind(observation: Observation, where: TopicPartition, broker_id: int) -> int:
    """The number of bytes by which the replica's log is smaller than the leader's; 0 if a size is unknown."""
    leader = (
        observation.topics[where.topic].partitions[where.partition].leader if where.topic in observation.topics else -1
    )
    sizes = [_size(observation, each, where) for each in (leader, broker_id)]
    return 0 if sizes[0] is None or sizes[1] is None else max(0, sizes[0] - sizes[1])


def _size(observation: Observation, broker_id: int, where: TopicPartition) -> int | None:
    for directory in observation.log_dirs.get(broker_id, ()):
        if where in directory.sizes:
            return directory.sizes[where]
    return None


@check(
    "offline-log-dir",
    Severity.PROBLEM,
    title="A log directory is offline",
    why="The broker could not read or write it and stopped using it: all replicas in it are unavailable.",
    remedy="Repair or replace the disk, then restart the broker: it copies the missing replicas from their leaders.",
)
def offline_log_dir(looks: Looks) -> Iterator[Fault]:
    for broker_id, directories in sorted(looks.last.log_dirs.items()):
        for directory in directories:
            if directory.is_offline:
                detail = f"{directory.path} failed while in use."
                yield Fault(f"broker {broker_id}", detail, looks.access.start_broker())
