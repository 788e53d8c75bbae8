"""Which segments a log may give up: those below its start, and by `retention.ms` and `retention.bytes`.

Only whole segments at the beginning go, never one that reaches the high watermark. The answer is an offset: the log
begins there afterwards. To find it, time indexes are read: it is for a thread.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaspar.storage.shrinking_log import ShrinkingLog


def new_start_offset(owner: "ShrinkingLog", now_ms: int, high_watermark: int) -> int:
    """Where the log has to begin, at least where it begins now."""
    config = owner.config
    segments = owner.segments.all
    ends = [*owner.segments.base_offsets[1:], owner.log_end_offset]
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    by_policy = "delete" in config.cleanup_policy
    start = owner.log_start_offset
    for segment, end in zip(segments, ends, strict=True):
        if end > high_watermark or segment.size == 0:
            break
        outlived = (
            by_policy
            and config.retention_ms >= 0
            and now_ms - segment.largest_timestamp(owner.directory.files) > config.retention_ms
        )
        too_much = by_policy and config.retention_bytes >= 0 and excess >= segment.size
        if not (end <= start or outlived or too_much):
            break
        excess -= segment.size
        start = max(start, end)
    return start
