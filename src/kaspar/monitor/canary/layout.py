"""Which partitions the canary's topic should have, so that each broker leads one: decisions without I/O.

A broker that has just left will most likely return: until then others lead its partitions, and nothing is moved. Once
it counts as removed, its replicas are moved, and its partition is spare. A broker without a partition of its own gets a
spare one, or a new one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TopicPartitionState:
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What has to be done. Only one of them at a time is not empty: the next follows from what it leads to."""

    create: tuple[tuple[int, ...], ...] = ()
    """The replicas of each partition of a new topic."""
    add: tuple[tuple[int, ...], ...] = ()
    """The replicas of each additional partition."""
    reassign: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    elect: tuple[int, ...] = ()
    """Partitions whose preferred replica is in sync and does not lead."""


def changes(
    partitions: Mapping[int, TopicPartitionState] | None,
    racks: Mapping[int, str | None],
    *,
    absent: Collection[int] = (),
    replication_factor: int = 3,
) -> Changes:
    """`racks` are those of the brokers in the cluster, `absent` are brokers that are expected to return. No topic is
    None."""
    ring = _ring(racks)
    if not ring:
        return Changes()
    if partitions is None:
        return Changes(create=tuple(_replicas(ring, broker, replication_factor) for broker in sorted(ring)))
    if moved := _reassigned(partitions, ring, absent, replication_factor):
        return Changes(reassign=moved)
    led = {each.replicas[0] for each in partitions.values() if each.replicas}
    if missing := sorted(set(ring) - led):
        return Changes(add=tuple(_replicas(ring, broker, replication_factor) for broker in missing))
    return Changes(
        elect=tuple(
            number
            for number, each in sorted(partitions.items())
            if each.replicas and each.leader != each.replicas[0] and each.replicas[0] in set(each.isr) & set(ring)
        )
    )


def _reassigned(
    partitions: Mapping[int, TopicPartitionState], ring: Sequence[int], absent: Collection[int], replication_factor: int
) -> dict[int, tuple[int, ...]]:
    """New replicas of partitions that removed brokers have, that are spare while a broker has none, or that have too
    few replicas. One with more replicas than wanted is being moved already, and waits."""
    kept = set(ring) | set(absent)
    wanted = min(replication_factor, len(ring))
    owners: dict[int, int] = {}
    spare: list[int] = []
    for number, each in sorted(partitions.items()):
        preferred = each.replicas[0] if each.replicas else -1
        if preferred not in kept or preferred in owners:
            spare.append(number)
        else:
            owners[preferred] = number
    missing = [broker for broker in sorted(ring) if broker not in owners]
    moved: dict[int, tuple[int, ...]] = {}
    for number, each in sorted(partitions.items()):
        preferred = each.replicas[0] if each.replicas else -1
        if len(each.replicas) > replication_factor:
            continue
        if number in spare and missing:
            moved[number] = _replicas(ring, missing.pop(0), replication_factor)
        elif preferred not in kept:
            moved[number] = _replicas(ring, ring[number % len(ring)], replication_factor)
        elif preferred in ring and (len(each.replicas) < wanted or not kept.issuperset(each.replicas)):
            moved[number] = _replicas(ring, preferred, replication_factor)
    return moved


def _ring(racks: Mapping[int, str | None]) -> list[int]:
    """The brokers in an order in which neighbours are in different racks, as far as possible."""
    by_rack: dict[str, list[int]] = {}
    for broker, rack in sorted(racks.items()):
        by_rack.setdefault(rack or "", []).append(broker)
    ring: list[int] = []
    while any(by_rack.values()):
        ring += [brokers.pop(0) for brokers in by_rack.values() if brokers]
    return ring


def _replicas(ring: Sequence[int], first: int, replication_factor: int) -> tuple[int, ...]:
    at = ring.index(first)
    return (*ring[at:], *ring[:at])[:replication_factor]
