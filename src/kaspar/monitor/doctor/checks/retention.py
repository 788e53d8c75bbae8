"""Retention and groups: records that are deleted before a group has read them."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.base.sentences import bytes_text, counted, duration_text, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.checks.disks import replica_sizes
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks, topics_of
from kaspar.monitor.doctor.observation import Observation

USED_UP: Final = 0.8
"""The fraction of a topic's retention after which unread records are in danger."""
_UNLIMITED: Final = -1


@check(
    "group-lost-records",
    Severity.PROBLEM,
    title="Records were deleted before a group read them",
    why="The committed offset is before the start of the log: the group resumes at auto.offset.reset, by default "
    "the end, and so skips the remaining records too.",
    remedy="Move the group to the start of the log, and lengthen the topic's retention.",
)
def group_lost_records(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    for group_id, group in sorted(last.groups.items()):
        lost = {
            where: last.ends[where].log_start_offset - offset
            for where, offset in sorted(group.committed.items())
            if where in last.ends and offset < last.ends[where].log_start_offset
        }
        if lost:
            detail = f"{counted(sum(lost.values()), 'offset')} before the start of {some(lost)} were not read."
            command = looks.access.kaspar("group", "seek", group_id, "--to", "start", "--topic", next(iter(lost)).topic)
            yield Fault(f"group {group_id}", detail, command, topics_of(lost))


@check(
    "group-loses-records",
    Severity.PROBLEM,
    title="A group is about to lose unread records",
    why="Its oldest unread records have used up most of the topic's retention and will be deleted soon.",
    remedy="Lengthen the topic's retention until the group has caught up.",
)
def group_loses_records(looks: Looks) -> Iterator[Fault]:
    last, sizes = looks.last, replica_sizes(looks.last)
    for group_id, group in sorted(last.groups.items()):
        by_time = [where for where, offset in sorted(group.committed.items()) if _is_old(last, where, offset)]
        by_size = [
            where
            for where, offset in sorted(group.committed.items())
            if where not in by_time and _is_in_full_log(last, where, offset, sizes.get(where, 0))
        ]
        if by_time:
            topic = by_time[0].topic
            retention_ms = last.number(topic, "retention.ms") or 0
            detail = (
                f"Unread records of {some(by_time)} are older than {duration_text(USED_UP * retention_ms / 1000)}, and "
                f"retention.ms is {duration_text(retention_ms / 1000)}."
            )
            command = looks.access.kaspar("topic", "alter", topic, "--set", f"retention.ms={2 * retention_ms}")
            yield Fault(f"group {group_id}", detail, command, topics_of(by_time))
        if by_size:
            topic = by_size[0].topic
            limit = last.number(topic, "retention.bytes") or 0
            detail = (
                f"Unread records are the oldest in {some(by_size)}, which is close to retention.bytes "
                f"({bytes_text(limit)})."
            )
            command = looks.access.kaspar("topic", "alter", topic, "--set", f"retention.bytes={2 * limit}")
            yield Fault(f"group {group_id}", detail, command, topics_of(by_size))


def _is_old(observation: Observation, where: TopicPartition, offset: int) -> bool:
    ends = observation.ends.get(where)
    if ends is None or ends.old_until is None or not _is_unread(observation, where, offset):
        return False
    return offset < ends.old_until


def _is_in_full_log(observation: Observation, where: TopicPartition, offset: int, size: int) -> bool:
    limit = observation.number(where.topic, "retention.bytes")
    if limit is None or limit <= 0 or size < USED_UP * limit or not _is_unread(observation, where, offset):
        return False
    ends = observation.ends[where]
    return offset - ends.log_start_offset < (1 - USED_UP) * (ends.high_watermark - ends.log_start_offset)


def _is_unread(observation: Observation, where: TopicPartition, offset: int) -> bool:
    """Whether there are records that the group has not read, in a topic that deletes records."""
    ends = observation.ends.get(where)
    if ends is None or "delete" not in (observation.topic_setting(where.topic, "cleanup.policy") or "delete"):
        return False
    return ends.log_start_offset <= offset < ends.high_watermark


def danger_ms(observation: Observation, topic: str) -> int | None:
    """The age at which unread records of a topic are in danger; None if it has no time-based retention."""
    retention_ms = observation.number(topic, "retention.ms")
    policy = observation.topic_setting(topic, "cleanup.policy") or "delete"
    if retention_ms is None or retention_ms == _UNLIMITED or "delete" not in policy:
        return None
    return int(USED_UP * retention_ms)
