"""The offsets that a group is reset to. Only decisions: the logs are behind a Protocol."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.tools.consumer_groups.options import WrongOption
from kaspar.tools.log_offsets import OffsetLookup, Offsets


@dataclass(frozen=True, slots=True)
class Targets:
    offsets: Offsets
    outside: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Requested offsets that are outside of the log. They are replaced by the nearest end of the log."""
    ended: tuple[TopicPartition, ...] = ()
    """Partitions without a record since the requested time. They are reset to the end of the log."""


def within_log(lookup: OffsetLookup, wanted: Offsets) -> Targets:
    """An offset outside of the log is replaced by the nearest end."""
    first, end = lookup.earliest(wanted.keys()), lookup.latest(wanted.keys())
    found = {where: min(max(offset, first[where]), end[where]) for where, offset in wanted.items()}
    return Targets(found, {where: offset for where, offset in wanted.items() if found[where] != offset})


def shifted(lookup: OffsetLookup, partitions: Collection[TopicPartition], by: int) -> Targets:
    committed = lookup.committed()
    for where in partitions:
        if where not in committed:
            raise WrongOption(f"Cannot shift offset for partition {where} since there is no current committed offset")
    return within_log(lookup, {where: committed[where] + by for where in partitions})


def at_time(lookup: OffsetLookup, partitions: Collection[TopicPartition], timestamp_ms: int) -> Targets:
    """Partitions without a record since this time are reset to their end."""
    found = lookup.at(partitions, timestamp_ms)
    ended = tuple(where for where in partitions if found[where] == NO_OFFSET)
    return Targets({**found, **(lookup.latest(ended) if ended else {})}, ended=ended)


def current(lookup: OffsetLookup, partitions: Collection[TopicPartition]) -> Targets:
    """The committed offsets. Partitions without one are reset to their end."""
    committed = lookup.committed()
    missing = [where for where in partitions if where not in committed]
    return Targets(
        {
            **{where: committed[where] for where in partitions if where in committed},
            **(lookup.latest(missing) if missing else {}),
        }
    )
