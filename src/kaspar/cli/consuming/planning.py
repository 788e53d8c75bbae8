"""The offsets at which `kaspar consume` starts and stops. They are looked up in the cluster once, when it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.cli.consuming.positions import AtOffset, AtTime, End, Last, Position, Start
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kaspar.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, offsets_at

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets of a partition, from `earliest` up to but not including `latest`."""

    earliest: int
    latest: int
    at_time: int = NO_OFFSET
    """The first offset at or after the position's time; -1 if there is none, or the position is not a time."""


def start_of(position: Position, bounds: Bounds) -> int:
    """The start offset for a position. An offset outside the partition's bounds is clamped to them."""
    match position:
        case Start():
            wanted = bounds.earliest
        case End():
            wanted = bounds.latest
        case AtOffset(offset):
            wanted = offset
        case Last(count):
            wanted = bounds.latest - count
        case AtTime():
            wanted = bounds.at_time if bounds.at_time != NO_OFFSET else bounds.latest
        case _:
            assert_never(position)
    return min(max(wanted, bounds.earliest), bounds.latest)


def find_starts(client: Client, partitions: Sequence[TopicPartition], position: Position) -> Offsets:
    latest = offsets_at(client, partitions, LATEST_TIMESTAMP)
    earliest = offsets_at(client, partitions, EARLIEST_TIMESTAMP) if not isinstance(position, End) else latest
    timed = offsets_at(client, partitions, position.timestamp_ms) if isinstance(position, AtTime) else {}
    return {
        where: start_of(position, Bounds(earliest[where], latest[where], timed.get(where, NO_OFFSET)))
        for where in partitions
    }


def find_ends(
    client: Client, partitions: Sequence[TopicPartition], until: End | AtTime, *, read_committed: bool
) -> Offsets:
    """For each partition the offset after the last record to read."""
    isolation_level = READ_COMMITTED if read_committed else READ_UNCOMMITTED
    latest = offsets_at(client, partitions, LATEST_TIMESTAMP, isolation_level=isolation_level)
    if isinstance(until, End):
        return latest
    timed = offsets_at(client, partitions, until.timestamp_ms, isolation_level=isolation_level)
    return {
        where: latest[where] if timed[where] == NO_OFFSET else min(timed[where], latest[where]) for where in partitions
    }
