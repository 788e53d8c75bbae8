"""Which segments a log may give up: those below its start, and by `retention.ms` and `retention.bytes`.

Only whole segments at the beginning go, never one that reaches the high watermark. The answer is an offset: the log
begins there afterwards. To find it, time indexes are read: it is for a thread.

With `cleanup.policy=delete`, alone or beside `compact`, a segment has outlived its time when its largest timestamp has:
that of its records, or where they have none, when its file was last written to. A timestamp that lies in the future
keeps a segment, and all that follow it, for as long; `message.timestamp.after.max.ms` keeps such records out. Without
`delete`, only what lies below the start goes.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kaspar.storage.segment import Segment
    from kaspar.storage.shrinking_log import ShrinkingLog


class Retained(NamedTuple):
    """What retention has found out about a log."""

    start_offset: int
    """Where the log has to begin, at least where it begins now."""
    from_the_future: "Segment | None"
    """The first segment that stays, if that is because of a timestamp that is yet to come."""


def retained(owner: "ShrinkingLog", now_ms: int, high_watermark: int) -> Retained:
    config = owner.config
    base_offsets, segments = owner.segments
    ends = [*base_offsets[1:], owner.log_end_offset]
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    by_policy = "delete" in config.cleanup_policy
    by_time = by_policy and config.retention_ms >= 0
    start = owner.log_start_offset
    for segment, end in zip(segments, ends, strict=True):
        if end > high_watermark or (segment is segments[-1] and segment.size == 0):
            break
        age_ms = now_ms - segment.largest_timestamp(owner.directory.files) if by_time else 0
        outlived = by_time and age_ms > config.retention_ms
        too_much = by_policy and config.retention_bytes >= 0 and excess >= segment.size
        if not (end <= start or outlived or too_much):
            return Retained(start, segment if age_ms < 0 else None)
        excess -= segment.size
        start = max(start, end)
    return Retained(start, None)
