"""Decides which partitions the canary's topic should have, so that each broker leads one. No I/O.

A broker that has just left will most likely return; until then other brokers lead its partitions, and nothing is moved.
Once it counts as removed, its replicas are moved, and its partition becomes spare. A broker without its own partition
gets a spare one, or a new one.
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
    """The changes to make. Only one field is not empty at a time, because the next change depends on its result."""

    create: tuple[tuple[int, ...], ...] = ()
    """The replicas of each partition of the new topic."""
    add: tuple[tuple[int, ...], ...] = ()
    """The replicas of each additional partition."""
    reassign: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    elect: tuple[int, ...] = ()
    """Partitions whose preferred replica is in sync but not the leader."""


def changes(
    partitions: Mapping[int, TopicPartitionState] | None,
    racks: Mapping[int, str | None],
    *,
    absent: Collection[int] = (),
    replication_factor: int = 3,
) -> Changes:
    """`partitions` is None if the topic does not exist. `racks` are those of the brokers in the cluster; `absent` are
    brokers that are expected to return."""
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
    """New replicas of partitions that have too few or are on removed brokers, and of spare partitions while a broker
    has none. A partition with more replicas than wanted is being moved already, and is skipped."""
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
    """The brokers in an order in which neighbours are in different racks, if possible."""
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
