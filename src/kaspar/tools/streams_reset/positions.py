"""The offsets to which the input topics are reset. Only decisions: the log is behind a Protocol.

An offset outside of the log is replaced by the nearest end. Like Kafka's StreamsResetter, this also reports an offset
that is exactly one of the two ends.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.log_offsets import OffsetLookup, Offsets


class UnreadablePlan(CommandFailed):
    """The text of a file of offsets is malformed."""


@dataclass(frozen=True, slots=True)
class Positions:
    offsets: Offsets
    notes: list[str] = field(default_factory=list)
    """Notices for the user about the offsets."""


def to_offset(lookup: OffsetLookup, partitions: Collection[TopicPartition], offset: int) -> Positions:
    return _within_log(lookup, dict.fromkeys(partitions, offset))


def shifted(lookup: OffsetLookup, partitions: Collection[TopicPartition], number: int) -> Positions:
    """Shift the committed offsets by this number. A partition without a committed offset starts from its end."""
    current = {**lookup.latest(partitions), **lookup.committed()}
    return _within_log(lookup, {where: current[where] + number for where in partitions})


def to_time(lookup: OffsetLookup, partitions: Collection[TopicPartition], timestamp_ms: int) -> Positions:
    """Partitions without a record since this time are reset to their end."""
    found = lookup.at(partitions, timestamp_ms)
    ended = [where for where in partitions if found[where] == NO_OFFSET]
    notes = [
        f"Partition {where.partition} from topic {where.topic} is empty, without a committed record. Falling back to "
        "latest known offset."
        for where in ended
    ]
    return Positions({**found, **(lookup.latest(ended) if ended else {})}, notes)


def from_plan(lookup: OffsetLookup, partitions: Collection[TopicPartition], plan: Offsets) -> Positions:
    """The plan must contain all partitions of the input topics, and no others."""
    if missing := sorted({*partitions} - plan.keys()):
        raise CommandFailed(
            f"The reset plan has no offsets for these partitions of the input topics: {_named(missing)}"
        )
    if others := sorted(plan.keys() - {*partitions}):
        raise CommandFailed(f"The reset plan has partitions that are not of the input topics: {_named(others)}")
    return _within_log(lookup, plan)


def parse_plan(text: str) -> dict[TopicPartition, int]:
    """Parse lines of TOPIC,PARTITION,OFFSET."""
    if not text:
        raise UnreadablePlan("Error parsing reset plan CSV file. It is empty,")
    plan = {}
    for line in text.rstrip("\n").split("\n"):
        fields = line.split(",")
        if len(fields) != 3:
            raise UnreadablePlan("Reset plan CSV file is not following the format `TOPIC,PARTITION,OFFSET`.")
        topic, partition, offset = fields
        plan[TopicPartition(topic, _number(partition))] = _number(offset)
    return plan


def _within_log(lookup: OffsetLookup, wanted: Offsets) -> Positions:
    first, end = lookup.earliest(wanted.keys()), lookup.latest(wanted.keys())
    positions = Positions({where: min(max(offset, first[where]), end[where]) for where, offset in wanted.items()})
    for where, offset in wanted.items():
        if offset >= end[where]:
            positions.notes.append(_replaced(offset, "higher than latest", end[where]))
        elif offset <= first[where]:
            positions.notes.append(_replaced(offset, "lower than earliest", first[where]))
    return positions


def _replaced(offset: int, how: str, by: int) -> str:
    return f"New offset ({offset}) is {how} offset. Value will be set to {by}"


def _number(text: str) -> int:
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII) is None:  # int() also accepts spaces and underscores
        raise CommandFailed(f'For input string: "{text}"')
    return int(text)


def _named(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
