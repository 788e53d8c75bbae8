"""Chooses brokers for new partitions: distinct brokers, distinct racks as far as possible, evenly.

The brokers form a circle in which neighbours are in different racks. The leader of each partition is the next broker
after the leader of the previous partition, so leaders are spread evenly. The followers come after the leader in the
circle, from racks that the partition does not use yet; after each full round they are taken from further away, so that
the load of a failed leader spreads over all other brokers. A new topic starts at a random broker, so that small topics
do not all start on the same one; partitions added to a topic continue where it stopped.

Brokers that are registered but down get replicas only if too few are up (Kafka's StripedReplicaPlacer calls them
fenced): they lead nothing, and join when they are back. Their racks are unknown, so they are taken in turn.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId


class Placeable(Protocol):
    """The properties of a broker that matter for placement."""

    @property
    def broker_id(self) -> BrokerId: ...
    @property
    def rack(self) -> str | None: ...


def place(
    brokers: Iterable[Placeable],
    partition_count: int,
    replication_factor: int,
    rng: random.Random,
    existing: Sequence[Sequence[BrokerId]] = (),
    *,
    down: Collection[BrokerId] = (),
) -> list[tuple[BrokerId, ...]]:
    """The replicas of each new partition, leader first. `brokers` are up, those in `down` are registered but not up,
    `existing` are the replicas of the topic's existing partitions.
    """
    circle = _circle(brokers)
    _check_factor(replication_factor, len(circle), len(circle) + len(down))
    on_up, fenced = min(replication_factor, len(circle)), sorted(down)
    leaders = [broker.broker_id for broker in circle]
    if existing and existing[0][0] in leaders:
        start = leaders.index(existing[0][0])
    else:
        start = rng.randrange(len(circle))
    shift = rng.randrange(len(circle))
    return [
        _replicas(circle, (start + number) % len(circle), shift + number // len(circle), on_up)
        + tuple(fenced[(number + each) % len(fenced)] for each in range(replication_factor - on_up))
        for number in range(len(existing), len(existing) + partition_count)
    ]


def _circle(brokers: Iterable[Placeable]) -> list[Placeable]:
    """The brokers, alternating between racks: the first of each rack, then the second of each rack, and so on."""
    by_rack: dict[str, list[Placeable]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        by_rack.setdefault(broker.rack or "", []).append(broker)
    racks = [by_rack[name] for name in sorted(by_rack)]
    longest = max(map(len, racks), default=0)
    return [rack[turn] for turn in range(longest) for rack in racks if turn < len(rack)]


def _replicas(circle: Sequence[Placeable], leader: int, shift: int, replication_factor: int) -> tuple[BrokerId, ...]:
    used = Counter(dict.fromkeys((broker.rack for broker in circle), 0))
    shift *= len(used)
    chosen = [circle[leader].broker_id]
    used[circle[leader].rack] += 1
    while len(chosen) < replication_factor:
        least = min(used.values())
        follower: Placeable | None = None
        for each in _followers(circle, leader, shift):
            if each.broker_id in chosen:
                continue
            if follower is None or used[each.rack] < used[follower.rack]:
                follower = each
            if used[follower.rack] == least:
                break
        assert follower is not None, "there are as many brokers as replicas"
        chosen.append(follower.broker_id)
        used[follower.rack] += 1
    return tuple(chosen)


def _followers(circle: Sequence[Placeable], leader: int, shift: int) -> Iterator[Placeable]:
    """All brokers except the leader, starting `shift` places after the one next to it."""
    others = len(circle) - 1
    return (circle[(leader + 1 + (shift + number) % others) % len(circle)] for number in range(others))


def _check_factor(replication_factor: int, up: int, registered: int) -> None:
    prefix = f"Unable to replicate the partition {replication_factor} time(s): "
    if up == 0:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, f"{prefix}All brokers are currently fenced.")
    if replication_factor > registered:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{prefix}The target replication factor of {replication_factor} cannot be reached because only "
            f"{registered} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
