"""Chooses brokers for new partitions: distinct brokers, distinct racks while there are some, and as even as can be.

Replicas walk round the racks, and inside a rack round its brokers; each partition starts one rack further. So with
racks A, B and C the first partition's leader is in A, the second's in B, the third's in C, and so on. Where the walk
begins is random, so that topics with few partitions do not all land on the same broker; partitions added to a topic
go on where it stopped.
"""

import random
from collections.abc import Iterable, Sequence

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.metadata.image import BrokerRegistration


class _Rack:
    """The brokers of one rack in a circle. Each partition starts one broker further than the one before."""

    def __init__(self, brokers: Iterable[BrokerId], chance: random.Random) -> None:
        self._brokers = sorted(brokers)
        self._chance = chance
        self._start = chance.randrange(len(self._brokers))
        self._given = 0
        self._turns = 0

    def continue_after(self, broker: BrokerId) -> None:
        self._start = self._brokers.index(broker)

    def next_partition(self) -> None:
        if not self._given:
            return
        self._given = 0
        self._start += 1
        self._turns += 1
        if self._turns == len(self._brokers):
            # Every broker had its turn to be first. Another order gives every leader other followers in the next round.
            self._turns = 0
            self._chance.shuffle(self._brokers)

    def next_broker(self) -> BrokerId | None:
        if self._given == len(self._brokers):
            return None
        broker = self._brokers[(self._start + self._given) % len(self._brokers)]
        self._given += 1
        return broker

    def __contains__(self, broker: BrokerId) -> bool:
        return broker in self._brokers


def place(
    brokers: Iterable[BrokerRegistration],
    partition_count: int,
    replication_factor: int,
    chance: random.Random,
    existing: Sequence[Sequence[BrokerId]] = (),
) -> list[tuple[BrokerId, ...]]:
    """The replicas of each new partition, the leader first. `existing` are those of the topic's earlier partitions."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in brokers:
        by_rack.setdefault(broker.rack or "", []).append(broker.broker_id)
    available = sum(map(len, by_rack.values()))
    _check_factor(replication_factor, available)
    racks = [_Rack(by_rack[name], chance) for name in sorted(by_rack)]
    start = _continue(racks, existing) if existing else chance.randrange(len(racks))
    return [_place_one(racks, start + number, replication_factor) for number in range(partition_count)]


def _place_one(racks: Sequence[_Rack], start: int, replication_factor: int) -> tuple[BrokerId, ...]:
    for rack in racks:
        rack.next_partition()
    replicas: list[BrokerId] = []
    position = start
    while len(replicas) < replication_factor:
        broker = racks[position % len(racks)].next_broker()
        if broker is not None:
            replicas.append(broker)
        position += 1
    return tuple(replicas)


def _continue(racks: Sequence[_Rack], existing: Sequence[Sequence[BrokerId]]) -> int:
    """Start each rack one broker after the last it gave, and the walk one rack after the last leader's."""
    for rack in racks:
        last = next((broker for replicas in reversed(existing) for broker in replicas if broker in rack), None)
        if last is not None:
            rack.continue_after(last)
            rack.next_broker()
    last_leader = existing[-1][0]
    position = next((number for number, rack in enumerate(racks) if last_leader in rack), -1)
    return position + 1


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
