"""Resets the offsets of the input topics according to the options, with the output of Kafka's StreamsResetter."""

import argparse
import sys
import time
from collections.abc import Collection, Iterable

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.topics import describe_topics
from kaspar.client.offsets import commit_offsets
from kaspar.tools.command_line import read_file
from kaspar.tools.log_offsets import ClusterLookups, GroupLookup, Offsets
from kaspar.tools.streams_reset import positions
from kaspar.tools.streams_reset.positions import Positions
from kaspar.tools.times import UnreadableTime, parse_datetime, parse_duration


def shown(items: Iterable[str]) -> str:
    """The list in Java's format."""
    return f"[{', '.join(items)}]"


class OffsetReset:
    def __init__(self, admin: Admin, options: argparse.Namespace, existing: Collection[str]) -> None:
        self._admin = admin
        self._options = options
        self._group_id: str = options.application_id
        self._input: list[str] = options.input_topics
        self._intermediate: list[str] = options.intermediate_topics
        self._lookup = GroupLookup(ClusterLookups(admin, [self._group_id]), self._group_id)
        self._existing = {*existing}
        self.not_found = [topic for topic in (*self._input, *self._intermediate) if topic not in self._existing]

    def run(self) -> None:
        if self._intermediate:
            print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
        if not self._input and not self._intermediate:
            print("No input or intermediate topics specified. Skipping seek.")
            return
        self._announce()
        offsets = {**self._input_offsets(), **self._intermediate_offsets()}
        if not offsets:
            return
        if not self._options.dry_run:
            self._commit(offsets)
        print("Done.")

    def _announce(self) -> None:
        if self._input:
            print(f"Reset-offsets for input topics {shown(self._input)}")
        if self._intermediate:
            print(f"Seek-to-end for intermediate topics {shown(self._intermediate)}")
        for kind, topics in (("input", self._input), ("intermediate", self._intermediate)):
            missing = [topic for topic in topics if topic not in self._existing]
            if missing:
                print(f"Following {kind} topics are not found, skipping them")
            for topic in missing:
                print(f"Topic: {topic}" if kind == "input" else f"Topic:{topic}")

    def _input_offsets(self) -> Offsets:
        partitions = self._partitions(self._input)
        if not partitions:
            return {}
        print(f"Following input topics offsets will be reset to (for consumer group {self._group_id})")
        try:
            target = self._target(partitions)
        except (positions.UnreadablePlan, UnreadableTime):
            print("ERROR: Resetting offsets failed.", file=sys.stderr)
            raise
        for note in target.notes:
            print(note)
        for where in partitions:
            print(f"Topic: {where.topic} Partition: {where.partition} Offset: {target.offsets[where]}")
        return target.offsets

    def _target(self, partitions: Collection[TopicPartition]) -> Positions:
        lookup, options = self._lookup, self._options
        if options.to_offset is not None:
            return positions.to_offset(lookup, partitions, options.to_offset)
        if options.shift_by is not None:
            return positions.shifted(lookup, partitions, options.shift_by)
        if options.to_datetime is not None:
            return positions.to_time(lookup, partitions, parse_datetime(options.to_datetime))
        if options.by_duration is not None:
            now_ms = time.time_ns() // 1_000_000
            return positions.to_time(lookup, partitions, now_ms - parse_duration(options.by_duration))
        if options.from_file is not None:
            return positions.from_plan(lookup, partitions, positions.parse_plan(read_file(options.from_file)))
        if options.to_latest:
            return Positions(lookup.latest(partitions))
        return Positions(lookup.earliest(partitions))

    def _intermediate_offsets(self) -> Offsets:
        partitions = self._partitions([topic for topic in self._intermediate if topic not in self._input])
        if not partitions:
            return {}
        print(
            f"Following intermediate topics offsets will be reset to end (for consumer group {self._group_id})",
            *(f"Topic: {where.topic}" for where in partitions),
            sep="\n",
        )
        return self._lookup.latest(partitions)

    def _partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """The partitions of those topics that exist, in order."""
        found = []
        for name, topic in describe_topics(self._admin, [each for each in topics if each in self._existing]).items():
            found += [TopicPartition(name, each.partition) for each in accepted(topic).partitions]
        return sorted(found)

    def _commit(self, offsets: Offsets) -> None:
        """Commits without metadata, by which a Kaspar Streams application recognizes the reset."""
        refused = commit_offsets(self._admin.client, self._group_id, offsets)
        for where, code in sorted(refused.items()):
            raise Refused(code, f"The offset of {where} was not committed: {code.name}")
