"""One partition's log: appends, reads, offsets, durability.

Rules:
- One thread, the owner (the broker's event loop), changes a log. `read`, `flush`, the look-ups by time and `maintain`
  may run in any thread beside it.
- Bytes are in the file before their offset is visible, and `recovery_point` passes an offset only after a sync that
  began when the offset was already written. A failed sync is never tried again: its directory goes offline.
- No space left is no failure: what was written of a batch is cut off and the append is refused.
"""

import os
import uuid
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_PRODUCER_ID, LeaderEpoch, Offset, TopicPartition
from kaspar.base.log import get_log
from kaspar.base.patient_clock import Moment
from kaspar.config import LogConfig
from kaspar.records import (
    BatchHeader,
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    crc_matches,
    iter_headers,
    place_batch,
)
from kaspar.storage import committed_reads, log_reader, producer_replay, time_lookup
from kaspar.storage.append import WOULD_BLOCK, Appended, PreparedBatch, UnexpectedAppendOffset, WouldBlock
from kaspar.storage.batch_scan import OVERHEAD
from kaspar.storage.committed_reads import CommittedRead
from kaspar.storage.file_names import SNAPSHOT, numbered
from kaspar.storage.files import sync_file
from kaspar.storage.leader_epochs import EpochEnd, LeaderEpochCache
from kaspar.storage.local_log import jitter_ms
from kaspar.storage.log_directory import LogDirectory, NotCached
from kaspar.storage.log_reader import PLACE, SegmentsChanged
from kaspar.storage.producer_state import ProducerEntry, ProducerState
from kaspar.storage.segment import CLOSED, Segment
from kaspar.storage.shrinking_log import ShrinkingLog
from kaspar.storage.time_lookup import TimestampAndOffset

log = get_log(__name__)
_new = tuple.__new__  # a named tuple's own constructor takes three times as long, and appending is the hot path


class Log(ShrinkingLog):
    __slots__ = ()

    @staticmethod
    def create(
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: LogConfig,
        *,
        now_ms: int,
        log_start_offset: int = 0,
    ) -> "Log":
        """A new, empty log in a folder that is there already. Its files are closed until the first append."""
        segment = Segment.create(
            directory.files, folder, log_start_offset, now_ms=now_ms, jitter_ms=jitter_ms(config), preallocate=0
        )
        segment.close(directory.files)
        created = Log(
            directory,
            folder,
            topic_partition,
            topic_id,
            config,
            segments=[segment],
            log_start_offset=log_start_offset,
            log_end_offset=log_start_offset,
            recovery_point=log_start_offset,
            leader_epochs=LeaderEpochCache(),
            producers=ProducerState(topic_partition),
            snapshots=set(),
        )
        created.sync_with_next_flush([], names=True)
        return created

    @property
    def segment_count(self) -> int:
        return len(self.segments.all)

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    # Appends

    def append_as_leader(self, prepared: PreparedBatch, *, leader_epoch: int, now_ms: int) -> Appended:
        """Give the batch its offsets and write it. Refused leaves the log as it was. This is the hot path."""
        (
            buffer,
            start,
            end,
            offset_delta,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            is_transactional,
            log_append_time_ms,
        ) = prepared
        base_offset = self.log_end_offset
        if producer_id >= 0:
            repeated = self.producers.check(
                producer_id, producer_epoch, base_sequence, offset_delta, is_transactional, base_offset
            )
            if repeated is not None:
                return Appended(
                    repeated.first_offset, repeated.last_offset, repeated.timestamp, self.log_start_offset, True
                )
        last_offset = base_offset + offset_delta
        size = end - start
        segment = self._active
        position = segment.size
        if (
            position + size > segment.byte_limit
            or max_timestamp > segment.roll_after_timestamp
            or last_offset > segment.largest_offset
        ):
            segment = self._segment_for(size, base_offset, last_offset, max_timestamp, now_ms)
            position = segment.size
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, base_offset)
        place_batch(buffer, start, base_offset, leader_epoch)
        data = buffer if size == len(buffer) else memoryview(buffer)[start:end]
        try:
            written = self._pwrite(segment.fd, data, position)
            if written != size:
                self._write_rest(segment.fd, memoryview(data), position, written)
        except OSError as error:
            raise self._write_failed(segment, error) from error

        segment.recent_positions.append(position)
        segment.recent_offsets.append(base_offset)
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.offset_of_max_timestamp = last_offset
        if segment.bytes_since_index_entry > self._index_interval_bytes:
            self._add_index_entry(segment, last_offset, position)
        segment.bytes_since_index_entry += size
        if producer_id >= 0:
            self.producers.remember(
                producer_id, producer_epoch, base_sequence, offset_delta, last_offset, max_timestamp, is_transactional
            )
        # The end offset before the size: see log_reader. The mark last: a flush takes it away before it reads the end.
        self.log_end_offset = last_offset + 1
        segment.size = position + size
        if self.unflushed_since_ms < 0:
            self.unflushed_since_ms = self.directory.steady_ms()
        return _new(Appended, (base_offset, last_offset, log_append_time_ms, self.log_start_offset, False))

    def append_marker(
        self,
        marker: EndTransactionMarker,
        *,
        producer_id: int,
        producer_epoch: int,
        transaction_version: int,
        leader_epoch: int,
        now_ms: int,
    ) -> Appended:
        """End a producer's transaction on this partition. Refused leaves the log as it was."""
        offset = self.log_end_offset
        producers = self.producers
        producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch, transaction_version, offset)
        batch = build_end_transaction_marker(
            marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=now_ms
        )
        segment = self._segment_for(len(batch), offset, offset, now_ms, now_ms)
        aborted = marker.control_type is ControlType.ABORT
        decided = producers.decided_by(producer_id, offset, aborted=aborted)
        try:
            if decided is not None and (entry := decided.index_entry) is not None:
                self._add_aborted(segment, entry)
            # To the log it is a batch like any other that no producer sent.
            plain = PreparedBatch(batch, 0, len(batch), 0, now_ms, NO_PRODUCER_ID, -1, -1, False, -1)
            appended = self.append_as_leader(plain, leader_epoch=leader_epoch, now_ms=now_ms)
        except Refused:
            self._drop_aborted(segment, offset)
            raise
        producers.remember_marker(
            producer_id, producer_epoch, marker.coordinator_epoch, offset, now_ms, aborted=aborted
        )
        return appended

    def append_as_follower(
        self, buffer: bytes | bytearray | memoryview, *, leader_epoch: int, now_ms: int
    ) -> Appended | None:
        """Append batches as a leader sent them. A cut-off last one is left for the next fetch; None if nothing is left.

        Batches of a later leader epoch than the one this replica follows are left out too, with all after them.
        """
        view = memoryview(buffer)
        batches = list(self._batches_to_follow(view, leader_epoch))
        if not batches:
            return None
        first = batches[0][1]
        last_begin, last = batches[-1]
        end = last_begin + last.size
        segment = self._active
        if (
            segment.size + end <= segment.byte_limit
            and max(header.max_timestamp for _, header in batches) <= segment.roll_after_timestamp
            and last.last_offset <= segment.largest_offset
        ):
            self._write_followed(segment, view[:end], 0, batches, now_ms)
        else:
            for begin, header in batches:
                segment = self._segment_for(
                    header.size, header.base_offset, header.last_offset, header.max_timestamp, now_ms
                )
                self._write_followed(segment, view[begin : begin + header.size], begin, [(begin, header)], now_ms)
        return Appended(first.base_offset, last.last_offset, -1, self.log_start_offset, False)

    def _batches_to_follow(self, view: memoryview, leader_epoch: int) -> Iterator[tuple[int, BatchHeader]]:
        expected = self.log_end_offset
        for position, header in iter_headers(view, 0, len(view)):
            if header.leader_epoch > leader_epoch:
                return
            if header.base_offset < expected:
                raise UnexpectedAppendOffset(
                    f"{self.topic_partition} ends at {expected}, and a batch to append begins at {header.base_offset}"
                )
            if not crc_matches(view, position, header):
                raise Refused(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"a batch for {self.topic_partition} at offset {header.base_offset} has a wrong checksum",
                )
            expected = header.next_offset
            yield position, header

    def _write_followed(
        self, segment: Segment, data: memoryview, origin: int, batches: list[tuple[int, BatchHeader]], now_ms: int
    ) -> None:
        """Write whole batches in one go; `origin` is where `data` begins in the buffer that positions count in."""
        at = segment.size
        try:
            self._write_rest(segment.fd, data, at, 0)
        except OSError as error:
            raise self._write_failed(segment, error) from error
        for begin, header in batches:
            if header.leader_epoch >= 0 and header.leader_epoch != self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            position = at + begin - origin
            segment.appended(header.base_offset, header.last_offset, position, header.max_timestamp)
            if segment.bytes_since_index_entry > self._index_interval_bytes:
                self._add_index_entry(segment, header.last_offset, position)
            segment.bytes_since_index_entry += header.size
            batch = data[begin - origin : begin - origin + header.size]
            decided = producer_replay.remember_batch(self.producers, header, batch)
            if decided is not None and (entry := decided.index_entry) is not None:
                self._add_aborted(segment, entry)
        self.log_end_offset = batches[-1][1].next_offset
        segment.size = at + len(data)
        if self.unflushed_since_ms < 0:
            self.unflushed_since_ms = self.directory.steady_ms()

    # Reads

    def try_read(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> bytes | bytearray | WouldBlock:
        """Like `read`, for the owner only, and never waits for the disk: WOULD_BLOCK says to ask in a thread."""
        active = self._active
        log_end_offset = self.log_end_offset
        if upper_offset > log_end_offset:
            upper_offset = log_end_offset
        if offset >= upper_offset or offset < self.log_start_offset:
            log_reader.check_range(self, offset)
            return b""
        if not whole_first_batch and active.recent_batch_size(offset) > max_bytes:
            return b""
        try:
            position = active.recent_position(offset)
            if position >= 0 and active.fd != CLOSED:
                end = active.size if upper_offset == log_end_offset else active.recent_position(upper_offset)
                wanted = end - position
                if wanted > max_bytes:
                    wanted = max_bytes
                if wanted >= PLACE.size:
                    data = self.directory.pread_now(active.fd, wanted, position)
                    if len(data) >= PLACE.size:
                        base_offset, length, _, delta = PLACE.unpack_from(data)
                        if len(data) >= length + OVERHEAD and base_offset + delta >= offset:
                            return data
            return log_reader.read(
                self, offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch, source=self.directory.cached
            )
        except NotCached:
            return WOULD_BLOCK
        except OSError as error:
            raise self.directory.fail(error, f"reading {self.topic_partition}") from error

    def read(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> bytes | bytearray:
        """Bytes from the batch that holds `offset` on, at most `max_bytes`, all below `upper_offset`.

        With `whole_first_batch` the first batch comes whole even if it is larger; without, nothing comes then.
        Refused(OFFSET_OUT_OF_RANGE) outside the log; nothing at its end. May wait for the disk: call it in a thread.
        """
        source = self.directory.waiting
        while True:
            try:
                return log_reader.read(
                    self, offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch, source=source
                )
            except SegmentsChanged:
                continue
            except OSError as error:
                raise self.directory.fail(error, f"reading {self.topic_partition}") from error

    def try_read_committed(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> CommittedRead | WouldBlock:
        """Like `try_read`, with the aborted transactions that the bytes may hold records of."""
        records = self.try_read(offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch)
        if records is WOULD_BLOCK:
            return WOULD_BLOCK
        try:
            return committed_reads.with_aborted(self, offset, records, self.directory.cached)
        except NotCached:
            return WOULD_BLOCK
        except OSError as error:
            raise self.directory.fail(error, f"reading {self.topic_partition}") from error

    def read_committed(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> CommittedRead:
        """Like `read`, with the aborted transactions that the bytes may hold records of."""
        while True:
            swaps = self.swaps
            records = self.read(offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch)
            try:
                committed = committed_reads.with_aborted(self, offset, records, self.directory.waiting)
            except SegmentsChanged:
                continue
            except OSError as error:
                raise self.directory.fail(error, f"reading {self.topic_partition}") from error
            # A cleaned segment knows nothing of the aborted records that were read from the ones before it.
            if self.completed_swaps() == swaps:
                return committed

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record that is not older than `timestamp`. In a thread: it reads and may inflate."""
        try:
            return time_lookup.first_at_or_after(self, timestamp)
        except OSError as error:
            raise self.directory.fail(error, f"searching {self.topic_partition}") from error

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp. In a thread: it reads and may inflate."""
        try:
            return time_lookup.with_max_timestamp(self)
        except OSError as error:
            raise self.directory.fail(error, f"searching {self.topic_partition}") from error

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None:
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> LeaderEpoch | None:
        return self.leader_epochs.epoch_for_offset(offset)

    def last_stable_offset(self, high_watermark: int) -> Offset:
        """What a read_committed reader may see: committed, and before the first open transaction."""
        stable = self.producers.last_stable_offset(high_watermark)
        return Offset(stable if stable > self.log_start_offset else max(stable, self.log_start_offset))

    def size_between(self, begin: int, end: int) -> int:
        """The bytes of the batches from `begin` up to `end`, both where a batch begins or the log ends, if they are
        among the last ones; otherwise 0. For the owner.
        """
        active = self._active
        first = active.recent_position(begin)
        last = active.size if end >= self.log_end_offset else active.recent_position(end)
        return last - first if first >= 0 else 0

    def active_producers(self) -> list[ProducerEntry]:
        return list(self.producers.entries.values())

    def expire_producers(self, now: Moment, expiration_ms: int, at_most: int | None = None) -> Iterator[int]:
        """Forget producers idle for `producer.id.expiration.ms`: how many, each time that `at_most` were looked at."""
        return self.producers.expire(now, expiration_ms, at_most)

    # Durability

    def flush(self, up_to: int | None = None) -> Offset:
        """Sync everything appended so far; returns the new recovery point. Blocks: in a thread. With `up_to`, where a
        segment begins, later segments are left alone.

        Many appends share one sync: what is appended while it runs is for the next one.
        """
        with self._flushing:
            self.directory.check_online()
            truncations = self._truncations
            if up_to is None:
                self.unflushed_since_ms = -1
            target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
            try:
                self._sync_segments(self.recovery_point, target)
                self._persist_leader_epochs()
            except OSError as error:
                if self.deleted:
                    return Offset(self.recovery_point)  # the folder has another name by now, and nobody waits for it
                # The kernel may have dropped the pages it could not write: another sync would succeed and mean nothing.
                raise self.directory.take_offline(f"{error} while syncing {self.topic_partition}") from error
            with self._recovering:
                if truncations == self._truncations and target > self.recovery_point:
                    self.recovery_point = target
                return Offset(self.recovery_point)

    def close(self) -> None:
        """A clean end: indexes complete, a producer snapshot written, everything synced."""
        self.directory.check_online()
        files = self.directory.files
        try:
            self._active.complete_indexes(files)
            end = self.log_end_offset
            if end > 0 and end not in self.snapshots.written:
                self.snapshots.take(end, self.producers.taken())
                self._folder_dirty = True
            self.write_snapshots()
            if self._folder_dirty and end in self.snapshots.written:
                sync_file(files, os.path.join(self.folder, numbered(end, SNAPSHOT)))
            dirty = self._unsynced_indexes or self._unsynced_aborted or self._folder_dirty
            if self.recovery_point < self.log_end_offset or dirty:
                self._unsynced_indexes.append(self._active)
                self.flush()
            self._persist_leader_epochs()
        except OSError as error:
            raise self.directory.fail(error, f"closing {self.topic_partition}") from error
        self.abandon()
