"""The CSV files of --export and --from-file: TOPIC,PARTITION,OFFSET, preceded by GROUP if there are several groups."""

import csv
import io
from collections.abc import Mapping, Sequence

from kaspar.base.ids import TopicPartition
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.java_numbers import parse_int, parse_long

Plan = dict[str, dict[TopicPartition, int]]
"""The offsets of each group, by partition."""


def parse_plan(text: str, groups: Sequence[str]) -> Plan:
    """With a single group, lines need not contain its name. Malformed lines are skipped, as in Kafka's command: the
    caller reports a group that has no line."""
    if not text.strip():
        raise CommandFailed("The reset plan is empty")
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    plan: Plan = {}
    without_group = len(groups) == 1 and _offset_of(rows[0]) is not None
    for row in rows:
        group_id, *fields = [groups[0], *row] if without_group else row
        found = _offset_of(fields)
        if found is not None:
            where, offset = found
            plan.setdefault(group_id, {})[where] = offset
    return plan


def _offset_of(fields: Sequence[str]) -> tuple[TopicPartition, int] | None:
    if len(fields) != 3:
        return None
    topic, partition, offset = fields
    try:
        return TopicPartition(topic, parse_int(partition)), parse_long(offset)
    except ValueError:
        return None


def format_plan(offsets: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> str:
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    for group_id, of_group in offsets.items():
        for where, offset in of_group.items():
            writer.writerow([*([group_id] if with_group else []), where.topic, where.partition, offset])
    return output.getvalue()
