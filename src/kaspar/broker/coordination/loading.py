"""Reads a partition of an internal topic from its start to its end, in a thread, and replays every record into a shard.

Rules:
- Nothing in the log is fatal: a batch or record that cannot be read is logged and skipped, and so is a record type that
  only a later version knows. Loading continues after it.
- The log may move to another log directory in the meantime: each piece is read from the current log of the partition.
- Memory is bounded: the log is read in pieces of `load_buffer_size`, and a compressed batch is inflated piece by piece.
- The event loop is not blocked. Threads share Python's interpreter in turns of `sys.setswitchinterval`, but a garbage
  collection over a million new objects would be one long turn, so it is disabled until everything is read. None of the
  loaded objects are garbage, so later collections skip them (`gc.freeze`).
"""

import gc
from collections.abc import Callable
from typing import Final

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused, StorageFailure
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.base.log import get_log
from kaspar.coordination import Shard
from kaspar.records import BatchHeader, ControlType, Record, crc_matches, iter_batch, iter_headers
from kaspar.records import control_type as type_of_control
from kaspar.storage import Log

log = get_log(__name__)

FREEZE_FROM_RECORDS: Final = 10_000
MAX_LOGGED: Final = 20
"""How many damaged places of one partition are logged; all of them are counted."""


class LoadCancelled(Exception):
    """The load ends: the partition is no longer ours to load, or its log is gone, perhaps for the same reason. Also
    raised if the log still has records that a truncation will remove; then the partition can be loaded later.
    """


class ShardLoader:
    """Replays one partition's log into one shard, which nothing else uses yet."""

    def __init__(
        self, shard: Shard, current: Callable[[], Log], *, piece_bytes: int, cancelled: Callable[[], bool]
    ) -> None:
        """`current` returns the partition's current log; it is also called in the thread."""
        self.position = current().log_start_offset
        """Everything before this offset is replayed."""
        self.records = 0
        self.bytes = 0
        self.damaged = 0
        self.unknown = 0
        self._shard = shard
        self._current = current
        self._piece_bytes = piece_bytes
        self._cancelled = cancelled

    @property
    def topic_partition(self) -> TopicPartition:
        return self._current().topic_partition

    def load_up_to(self, end: int) -> None:
        """Replay the log up to `end`. Blocks, so it runs in a thread. Raises StorageFailure, or LoadCancelled."""
        collecting = gc.isenabled()
        gc.disable()
        before = self.records
        try:
            while self.position < end:
                self._load_piece(end)
        finally:
            if self.records - before >= FREEZE_FROM_RECORDS:
                gc.freeze()
            if collecting:
                gc.enable()

    def _load_piece(self, end: int) -> None:
        source = self._current()
        if source.truncation_due:
            raise LoadCancelled
        try:
            data = source.read(self.position, self._piece_bytes, end)
        except (Refused, StorageFailure) as problem:
            if self._current() is not source:
                return  # the log has moved: the same offset is read from its new place
            if isinstance(problem, StorageFailure):
                raise
            self._skip_after(source, problem, end)
            return
        if not data:
            self.position = end
            return
        view = memoryview(data)
        self.bytes += len(view)
        try:
            for start, header in iter_headers(view, 0, len(view)):
                if header.next_offset > self.position:
                    self._replay_batch(view, start, header)
                    self.position = header.next_offset
        except MalformedBytes as problem:
            self._damaged(self.position, str(problem))
            self._skip_segment(source, end)

    def _skip_after(self, source: Log, refusal: Refused, end: int) -> None:
        """Continue after a position from which the log cannot be read."""
        if refusal.code is ErrorCode.OFFSET_OUT_OF_RANGE and self.position < source.log_start_offset:
            self.position = min(source.log_start_offset, end)  # deleted while the log was read
            return
        if refusal.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_NOT_AVAILABLE):
            raise LoadCancelled
        self._damaged(self.position, refusal.message)
        self._skip_segment(source, end)

    def _skip_segment(self, source: Log, end: int) -> None:
        """Continue at the next segment: in bytes that are not batches nothing says where the next batch begins."""
        following = [base for base in source.segments.base_offsets if base > self.position]
        self.position = min((*following, end))

    def _replay_batch(self, view: memoryview, start: int, header: BatchHeader) -> None:
        if self._cancelled():
            raise LoadCancelled
        if not crc_matches(view, start, header):
            self._damaged(header.base_offset, "the checksum of the batch does not match")
            return
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch) if header.is_transactional else None
        try:
            if header.is_control:
                for record in iter_batch(view, start, header):
                    self._replay_control(record, producer)
            else:
                for record in iter_batch(view, start, header):
                    self._replay(record, producer)
        except MalformedBytes as problem:
            self._damaged(header.base_offset, str(problem))

    def _replay(self, record: Record, producer: ProducerIdAndEpoch | None) -> None:
        _, key, value, _, offset = record
        try:
            if key is None:
                raise MalformedBytes("a record of an internal topic has no key")
            if not self._shard.load(key, value, producer):
                self.unknown += 1
                return
        except MalformedBytes as problem:
            self._damaged(offset, str(problem))
        except Exception as problem:  # the edge: one record must not keep others from being loaded
            log.exception("a record could not be replayed", partition=self.topic_partition, offset=offset)
            self._damaged(offset, repr(problem))
        else:
            self.records += 1

    def _replay_control(self, record: Record, producer: ProducerIdAndEpoch | None) -> None:
        kind = type_of_control(record)
        if producer is not None and kind in (ControlType.COMMIT, ControlType.ABORT):
            self._shard.replay_marker(producer, committed=kind is ControlType.COMMIT)

    def _damaged(self, offset: int, problem: str) -> None:
        self.damaged += 1
        if self.damaged <= MAX_LOGGED:
            log.error(
                "skipped a damaged part of the log", partition=self.topic_partition, offset=offset, problem=problem
            )
