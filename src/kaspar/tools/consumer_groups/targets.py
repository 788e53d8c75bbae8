"""The offsets that a group is reset to: decisions only, the logs are behind a Protocol."""

import sys
from collections.abc import Collection

from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.tools.consumer_groups.options import WrongOption
from kaspar.tools.log_offsets import OffsetLookup, Offsets


def within_log(lookup: OffsetLookup, wanted: Offsets) -> Offsets:
    """An offset outside of the log becomes its nearest end."""
    first, end = lookup.earliest(wanted.keys()), lookup.latest(wanted.keys())
    found = {}
    for where, offset in wanted.items():
        found[where] = min(max(offset, first[where]), end[where])
        if found[where] != offset:
            how = "higher than latest" if offset > end[where] else "lower than earliest"
            print(
                f"WARN New offset ({offset}) is {how} offset for topic partition {where}. "
                f"Value will be set to {found[where]}.",
                file=sys.stderr,
            )
    return found


def shifted(lookup: OffsetLookup, partitions: Collection[TopicPartition], by: int) -> Offsets:
    committed = lookup.committed()
    for where in partitions:
        if where not in committed:
            raise WrongOption(f"Cannot shift offset for partition {where} since there is no current committed offset")
    return within_log(lookup, {where: committed[where] + by for where in partitions})


def at_time(lookup: OffsetLookup, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
    """Partitions without a record since then are reset to their ends."""
    found = lookup.at(partitions, timestamp_ms)
    ended = [where for where in partitions if found[where] == NO_OFFSET]
    for where in ended:
        print(
            f"\nWarn: Partition {where.partition} from topic {where.topic} is empty. "
            "Falling back to latest known offset."
        )
    return {**found, **(lookup.latest(ended) if ended else {})}


def current(lookup: OffsetLookup, partitions: Collection[TopicPartition]) -> Offsets:
    """What is committed; the ends of partitions of which nothing is."""
    committed = lookup.committed()
    missing = [where for where in partitions if where not in committed]
    return {
        **{where: committed[where] for where in partitions if where in committed},
        **(lookup.latest(missing) if missing else {}),
    }
