"""Which segments a log may delete, and their deletion: below its start, by `retention.ms` and by `retention.bytes`.

Only whole segments at the beginning are deleted, never one that reaches the high watermark. `start_offset` finds the
offset at which the log begins afterwards. It reads time indexes, so it runs in a thread.

With `cleanup.policy=delete`, alone or beside `compact`, a segment expires with its largest timestamp: that of its
records, or if they have none, the time of the last write to its file. A timestamp in the future keeps a segment, and
all that follow it, until then; `message.timestamp.after.max.ms` refuses such records. Without `delete`, only segments
below the log start offset are deleted.
"""

from kaspar.base.ids import Offset
from kaspar.base.log import get_log
from kaspar.storage.local_log import LocalLog
from kaspar.storage.producers.snapshots import ProducerSnapshots
from kaspar.storage.segments.segment import Segment
from kaspar.storage.swaps import SegmentSwaps

log = get_log(__name__)


class Retention:
    __slots__ = ("_local", "_reported", "_snapshots", "_swaps")

    def __init__(self, local: LocalLog, snapshots: ProducerSnapshots, swaps: SegmentSwaps) -> None:
        self._local = local
        self._snapshots = snapshots
        self._swaps = swaps
        # The base offset of the segment whose timestamps in the future were reported last.
        self._reported = -1

    def start_offset(self, log_start_offset: int, now_ms: int, high_watermark: int) -> Offset:
        """Where the log should begin; `log_start_offset` is where it begins now."""
        local = self._local
        swaps = local.swap_count
        try:
            start_offset = self._find(log_start_offset, now_ms, high_watermark)
        except FileNotFoundError:
            return Offset(log_start_offset)  # segments were deleted or cleaned meanwhile: the next run finds it
        except OSError as error:
            raise local.directory.fail(error, f"looking for old segments of {local.topic_partition}") from error
        if local.completed_swaps() != swaps:
            return Offset(log_start_offset)  # two different segments with the same name may have been read
        return Offset(start_offset)

    def _find(self, start: int, now_ms: int, high_watermark: int) -> int:
        local = self._local
        config = local.config
        base_offsets, segments = local.segments
        ends = [*base_offsets[1:], local.log_end_offset]
        excess = sum(segment.size for segment in segments) - config.retention_bytes
        by_policy = "delete" in config.cleanup_policy
        by_time = by_policy and config.retention_ms >= 0
        for segment, end in zip(segments, ends, strict=True):
            if end > high_watermark or (segment is segments[-1] and segment.size == 0):
                break
            age_ms = now_ms - segment.largest_timestamp(local.directory.files) if by_time else 0
            expired = by_time and age_ms > config.retention_ms
            too_much = by_policy and config.retention_bytes >= 0 and excess >= segment.size
            if not (end <= start or expired or too_much):
                if age_ms < 0:
                    self._report(segment, now_ms)
                break
            excess -= segment.size
            start = max(start, end)
        return start

    def _report(self, segment: Segment, now_ms: int) -> None:
        if segment.base_offset != self._reported:
            self._reported = segment.base_offset
            log.warning(
                "timestamps in the future keep a segment, and those after it, from being deleted by retention.ms",
                partition=self._local.topic_partition,
                base_offset=segment.base_offset,
                max_timestamp=segment.max_timestamp,
                now_ms=now_ms,
            )

    def delete_below(self, offset: int) -> int:
        """Delete the segments that end below `offset`, as far as possible now; returns how many. Owner only."""
        local = self._local
        before = len(local.segments.all)
        offset = self._deletable(offset)
        try:
            self._swaps.give_up(local.segments.below(offset))
            local.delete_segments_below(offset)
            self._snapshots.drop_below(local.segments.base_offsets[0])
        except OSError as error:
            raise local.directory.fail(error, f"deleting segments of {local.topic_partition}") from error
        return before - len(local.segments.all)

    def waits_for_snapshot(self, offset: int) -> bool:
        """Whether segments below `offset` stay until a producer snapshot is written."""
        segments = self._local.segments
        slot = segments.slot_of(offset)
        return slot > 0 and self._snapshots.waits(segments.base_offsets[slot])

    def _deletable(self, offset: int) -> int:
        """The offset, at most `offset`, below which segments may be deleted now. The producer snapshot at the base
        offset of the first segment that stays must be written: a start knows the producers of deleted records from
        nowhere else.
        """
        segments = self._local.segments
        slot = segments.slot_of(offset)
        while slot > 0 and self._snapshots.waits(segments.base_offsets[slot]):
            slot -= 1
        return segments.base_offsets[slot]
