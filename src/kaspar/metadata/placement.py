"""Chooses brokers for new partitions: distinct brokers, distinct racks while there are some, and as even as can be.

The brokers stand in a circle in which neighbours are of different racks. The leader of each partition is one broker
further than that of the partition before, so leaders are even. Its followers come after it in the circle, from racks
that it does not have yet; after each full round they are taken from further away, so that the load of a failed leader
spreads over all the others. Where the first topic's round begins is random, so that small topics do not all land on
the same broker; partitions added to a topic go on where it stopped.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.metadata.image import BrokerRegistration


def place(
    brokers: Iterable[BrokerRegistration],
    partition_count: int,
    replication_factor: int,
    chance: random.Random,
    existing: Sequence[Sequence[BrokerId]] = (),
) -> list[tuple[BrokerId, ...]]:
    """The replicas of each new partition, the leader first. `existing` are those of the topic's earlier partitions."""
    circle = _circle(brokers)
    _check_factor(replication_factor, len(circle))
    leaders = [broker.broker_id for broker in circle]
    if existing and existing[0][0] in leaders:
        start = leaders.index(existing[0][0])
    else:
        start = chance.randrange(len(circle))
    shift = chance.randrange(len(circle))
    return [
        _replicas(circle, (start + number) % len(circle), shift + number // len(circle), replication_factor)
        for number in range(len(existing), len(existing) + partition_count)
    ]


def _circle(brokers: Iterable[BrokerRegistration]) -> list[BrokerRegistration]:
    """The brokers in an order that goes round the racks: the first of each rack, the second of each, and so on."""
    by_rack: dict[str, list[BrokerRegistration]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        by_rack.setdefault(broker.rack or "", []).append(broker)
    racks = [by_rack[name] for name in sorted(by_rack)]
    longest = max(map(len, racks), default=0)
    return [rack[turn] for turn in range(longest) for rack in racks if turn < len(rack)]


def _replicas(
    circle: Sequence[BrokerRegistration], leader: int, shift: int, replication_factor: int
) -> tuple[BrokerId, ...]:
    rack_count = len({broker.rack for broker in circle})
    followers = list(_followers(circle, leader, shift * rack_count))
    chosen = [circle[leader]]
    used = Counter([circle[leader].rack])
    while len(chosen) < replication_factor:
        follower = min((each for each in followers if each not in chosen), key=lambda each: used[each.rack])
        chosen.append(follower)
        used[follower.rack] += 1
    return tuple(broker.broker_id for broker in chosen)


def _followers(circle: Sequence[BrokerRegistration], leader: int, shift: int) -> Iterator[BrokerRegistration]:
    """Everyone but the leader, beginning `shift` after it."""
    others = len(circle) - 1
    return (circle[(leader + 1 + (shift + number) % others) % len(circle)] for number in range(others))


def _check_factor(replication_factor: int, available: int) -> None:
    prefix = f"Unable to replicate the partition {replication_factor} time(s): "
    if available == 0:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, f"{prefix}All brokers are currently fenced.")
    if replication_factor > available:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{prefix}The target replication factor of {replication_factor} cannot be reached because only "
            f"{available} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
