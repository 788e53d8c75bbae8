"""One partition's log as the broker sees it: appends, reads, durability, and how it loses records.

It corresponds to Kafka's UnifiedLog: a LocalLog for the files, and the state derived from the records (leader epochs
and producers), which must stay in step with the files.

Rules:
- One thread, the owner (the broker's event loop), changes a log. `read`, `flush`, the lookups by time,
  `retention_start_offset`, `write_snapshots` and `maintain` may run in any other thread at the same time.
- Bytes are in the file before their offset is visible, and `recovery_point` passes an offset only after a sync that
  began when the offset was already written. A failed sync is never retried: its directory goes offline.
- A full disk is not a failure: the written part of a batch is cut off and the append is refused.
"""

import uuid
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_PRODUCER_ID, NO_TIMESTAMP, LeaderEpoch, Offset
from kaspar.base.named_tuples import new_tuple
from kaspar.base.patient_clock import Moment
from kaspar.config import LogConfig
from kaspar.records import ControlType, EndTransactionMarker, build_end_transaction_marker, build_fence, place_batch
from kaspar.records.layout import LENGTH_OVERHEAD
from kaspar.storage.append import WOULD_BLOCK, Appended, PreparedBatch, WouldBlock
from kaspar.storage.derived_state import DerivedState
from kaspar.storage.disk.source import NotCached
from kaspar.storage.fetched_batches import FetchedBatches, batches_to_append, write_batches
from kaspar.storage.leader_epochs import EpochEnd
from kaspar.storage.local_log import ColdIndex, LocalLog
from kaspar.storage.producers.entry import ProducerEntry
from kaspar.storage.reading import committed_reads, log_reader, time_lookup
from kaspar.storage.reading.committed_reads import CommittedRead
from kaspar.storage.reading.time_lookup import FirstData, TimestampAndOffset
from kaspar.storage.retention import Retention
from kaspar.storage.segments.search import PLACE
from kaspar.storage.segments.segment import CLOSED, Segment
from kaspar.storage.segments.segment_list import Segments
from kaspar.storage.swaps import SegmentSwaps
from kaspar.storage.validator import plain_terms


class Log:
    __slots__ = (
        "_retention",
        "config",
        "directory",
        "folder",
        "leader_epochs",
        "local",
        "log_start_offset",
        "plain_terms",
        "producers",
        "snapshots",
        "state",
        "swaps",
        "topic_id",
        "topic_partition",
        "truncating",
    )

    def __init__(
        self,
        local: LocalLog,
        topic_id: uuid.UUID | None,
        *,
        log_start_offset: int,
        state: DerivedState,
    ) -> None:
        self.local = local
        self.directory = local.directory
        self.folder = local.folder
        self.topic_partition = local.topic_partition
        self.topic_id = topic_id
        self.log_start_offset = log_start_offset
        self.state = state
        self.leader_epochs = state.leader_epochs
        self.producers = state.producers
        self.snapshots = state.snapshots
        self.swaps = SegmentSwaps(local, self.snapshots)
        self.truncating = False
        """Whether a thread is truncating the log now. Set by the owner, which does not use the log meanwhile."""
        self.config = local.config
        self.plain_terms = plain_terms(local.config)
        self._retention = Retention(local, self.snapshots, self.swaps)

    def reconfigure(self, config: LogConfig) -> None:
        """Apply changed topic settings. Owner only."""
        self.config = config
        self.plain_terms = plain_terms(config)
        self.local.reconfigure(config)

    @property
    def log_end_offset(self) -> int:
        return self.local.log_end_offset

    @property
    def recovery_point(self) -> int:
        return self.local.recovery_point

    @property
    def unflushed_messages(self) -> int:
        return self.local.log_end_offset - self.local.recovery_point

    @property
    def unflushed_since_ms(self) -> int:
        """Time of the oldest append that no sync has covered, on the steady clock; -1 if there is none."""
        return self.local.unflushed_since_ms

    @property
    def deleted(self) -> bool:
        return self.local.deleted

    @property
    def truncation_due(self) -> bool:
        """Whether a truncation did not finish, perhaps for lack of space: nothing is appended until it is repeated."""
        return self.local.truncation_due

    @property
    def segments(self) -> Segments:
        return self.local.segments

    @property
    def segment_count(self) -> int:
        return len(self.local.segments.all)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.local.segments.all)

    @property
    def retention_size_percent(self) -> int:
        """The size of the log in percent of `retention.bytes` (KIP-1257); 0 if that is not limited."""
        limit = self.config.retention_bytes
        return self.size * 100 // limit if limit > 0 else 0

    @property
    def producer_id_count(self) -> int:
        return len(self.producers.entries)

    # Appends

    @property
    def cold(self) -> bool:
        """Whether an append would block on disk I/O. To avoid that, call `read_cold` in a thread, then `warm_up`."""
        return self.local.cold

    def read_cold(self) -> ColdIndex | None:
        return self.local.read_cold()

    def warm_up(self, read: ColdIndex | None) -> None:
        self.local.warm_up(read)

    def append_as_leader(self, prepared: PreparedBatch, *, leader_epoch: int, now_ms: int) -> Appended:
        """Assign offsets to the batch and write it: the hot path. If it raises Refused, the log is unchanged."""
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
        local = self.local
        base_offset = local.log_end_offset
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
        segment = local.active
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
            written = local.pwrite(segment.fd, data, position)
            if written != size:
                local.write_rest(segment.fd, memoryview(data), position, written)
        except OSError as error:
            raise local.write_failed(segment, error) from error

        segment.recent_positions.append(position)
        segment.recent_offsets.append(base_offset)
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.offset_of_max_timestamp = last_offset
        if segment.bytes_since_index_entry > local.index_interval_bytes:
            local.add_index_entry(segment, last_offset, position)
        segment.bytes_since_index_entry += size
        if producer_id >= 0:
            self.producers.remember(
                producer_id, producer_epoch, base_sequence, offset_delta, last_offset, max_timestamp, is_transactional
            )
        # The end offset before the size: see log_reader. Then `unflushed_since_ms`: a flush resets it before reading
        # the end.
        local.log_end_offset = last_offset + 1
        segment.size = position + size
        if local.unflushed_since_ms < 0:
            local.unflushed_since_ms = local.directory.steady_ms()
        return new_tuple(Appended, (base_offset, last_offset, log_append_time_ms, self.log_start_offset, False))

    def _segment_for(self, size: int, base_offset: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """Slow path of an append: return the segment for a batch, rolled if necessary and open for writing."""
        if self.local.must_roll(size, last_offset, max_timestamp, now_ms):
            self._roll(base_offset, now_ms)
        return self.local.prepare_active(max_timestamp)

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
        """Write the marker that ends a producer's transaction here. If it raises Refused, the log is unchanged."""
        offset = self.local.log_end_offset
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
                self.local.add_aborted(segment, entry)
            # The marker is appended as a batch without a producer: the state of its producer is updated below.
            plain = PreparedBatch(batch, 0, len(batch), 0, now_ms, NO_PRODUCER_ID, -1, -1, False, -1)
            appended = self.append_as_leader(plain, leader_epoch=leader_epoch, now_ms=now_ms)
        except Refused:
            self.local.drop_aborted(segment, offset)
            raise
        producers.remember_marker(
            producer_id, producer_epoch, marker.coordinator_epoch, offset, now_ms, aborted=aborted
        )
        return appended

    def append_fence(
        self, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, leader_epoch: int, now_ms: int
    ) -> Appended | None:
        """Raise a producer's epoch within its transaction, so that producers with an older epoch can no longer add to
        it. None if it has been raised already. If it raises Refused, the log is unchanged.
        """
        producers = self.producers
        if not producers.check_fence(producer_id, producer_epoch, coordinator_epoch):
            return None
        batch = build_fence(producer_id=producer_id, producer_epoch=producer_epoch)
        # As with a marker, the state of its producer is updated below.
        plain = PreparedBatch(batch, 0, len(batch), 0, NO_TIMESTAMP, NO_PRODUCER_ID, -1, -1, False, -1)
        appended = self.append_as_leader(plain, leader_epoch=leader_epoch, now_ms=now_ms)
        producers.remember_fence(producer_id, producer_epoch, appended.base_offset, now_ms)
        return appended

    def append_as_follower(
        self, buffer: bytes | bytearray | memoryview, *, leader_epoch: int, now_ms: int
    ) -> Appended | None:
        """Append batches as a leader sent them; None if no batch is complete. See `check_fetched`."""
        fetched = self.check_fetched(buffer, leader_epoch=leader_epoch)
        return self.append_fetched(fetched, now_ms=now_ms) if fetched.batches else None

    def check_fetched(self, buffer: bytes | bytearray | memoryview, *, leader_epoch: int) -> FetchedBatches:
        """Return the batches in `buffer`, sent by a leader, that continue this log. An incomplete last one is left for
        the next fetch. Batches with a later leader epoch than `leader_epoch`, and all after them, are left out too. May
        run in any thread, as long as nothing else is appended.
        """
        return batches_to_append(memoryview(buffer), leader_epoch, self.local.log_end_offset, self.topic_partition)

    def append_fetched(self, fetched: FetchedBatches, *, now_ms: int) -> Appended:
        """Append the result of `check_fetched`, which must have at least one batch."""
        view, batches = fetched
        first, last = batches[0][1], batches[-1][1]
        end = fetched.size
        segment = self.local.active
        if (
            segment.size + end <= segment.byte_limit
            and max(header.max_timestamp for _, header in batches) <= segment.roll_after_timestamp
            and last.last_offset <= segment.largest_offset
        ):
            write_batches(self.local, self.state, segment, view[:end], 0, batches)
        else:
            for begin, header in batches:
                segment = self._segment_for(
                    header.size, header.base_offset, header.last_offset, header.max_timestamp, now_ms
                )
                part = view[begin : begin + header.size]
                write_batches(self.local, self.state, segment, part, begin, [(begin, header)])
        return Appended(first.base_offset, last.last_offset, -1, self.log_start_offset, False)

    def roll(self, *, now_ms: int) -> None:
        """Start a new segment at the log end offset, unless the active one is still empty."""
        if self.local.active.size:
            self._roll(self.local.log_end_offset, now_ms)

    def roll_if_overdue(self, *, now_ms: int) -> bool:
        """Roll the active segment of a compacted topic if it is due: it is to be cleaned in time even without
        appends.
        """
        overdue = self.local.is_overdue(now_ms)
        if overdue:
            self.roll(now_ms=now_ms)
        return overdue

    def _roll(self, base_offset: int, now_ms: int) -> None:
        self.local.roll(base_offset, now_ms)
        self.state.rolled(base_offset)

    # Reads

    def try_read(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> bytes | bytearray | WouldBlock:
        """Like `read`, but never blocks on disk I/O; WOULD_BLOCK means: call `read` in a thread. Owner only."""
        local = self.local
        active = local.active
        log_end_offset = local.log_end_offset
        if upper_offset > log_end_offset:
            upper_offset = log_end_offset
        if offset >= upper_offset or offset < self.log_start_offset:
            if not self.log_start_offset <= offset <= log_end_offset:
                raise log_reader.out_of_range(self, offset)
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
                    data = local.directory.pread_now(active.fd, wanted, position)
                    if len(data) >= PLACE.size:
                        base_offset, length, _, delta = PLACE.unpack_from(data)
                        if len(data) >= length + LENGTH_OVERHEAD and base_offset + delta >= offset:
                            return data
            return log_reader.read(
                self,
                offset,
                max_bytes,
                upper_offset,
                whole_first_batch=whole_first_batch,
                source=local.directory.cached,
            )
        except NotCached:
            return WOULD_BLOCK
        except OSError as error:
            raise log_reader.read_failed(local, error) from error

    def read(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> bytes | bytearray:
        """Read at most `max_bytes` below `upper_offset`, starting with the batch that contains `offset`.

        With `whole_first_batch` the first batch is returned whole even if it is larger; without, the result is empty
        then. Raises Refused(OFFSET_OUT_OF_RANGE) outside the log; at its end the result is empty. May block on disk
        I/O: call it in a thread.
        """
        return log_reader.read_waiting(self, offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch)

    def try_read_committed(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> CommittedRead | WouldBlock:
        """Like `try_read`, with the aborted transactions that may have records among the bytes."""
        records = self.try_read(offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch)
        if records is WOULD_BLOCK:
            return WOULD_BLOCK
        try:
            return committed_reads.with_aborted(self.local, offset, records, self.directory.cached)
        except NotCached:
            return WOULD_BLOCK
        except OSError as error:
            raise log_reader.read_failed(self.local, error) from error

    def read_committed(
        self, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool = True
    ) -> CommittedRead:
        """Like `read`, with the aborted transactions that may have records among the bytes."""
        return committed_reads.read_committed_waiting(
            self, offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch
        )

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record that is not older than `timestamp`. Call it in a thread: it reads and may decompress."""
        return time_lookup.first_at_or_after(self, timestamp)

    def first_data_batch(self, offset: int) -> FirstData:
        """The first batch with records of producers at or after `offset`. Call it in a thread: it reads headers."""
        return time_lookup.first_data_batch(self, offset)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp. Call it in a thread: it reads and may decompress."""
        return time_lookup.with_max_timestamp(self)

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch that wrote here; -1 if none is known."""
        return self.leader_epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None:
        return self.leader_epochs.end_offset_for(epoch, self.local.log_end_offset)

    def epoch_for_offset(self, offset: int) -> LeaderEpoch | None:
        return self.leader_epochs.epoch_for_offset(offset)

    def last_stable_offset(self, high_watermark: int) -> Offset:
        """The offset below which a read_committed reader may read: committed, and before the first open transaction."""
        stable = self.producers.last_stable_offset(high_watermark)
        return Offset(stable if stable > self.log_start_offset else max(stable, self.log_start_offset))

    def size_between(self, begin: int, end: int) -> int:
        """The size in bytes of the batches from `begin` up to `end` if they are among the last ones; otherwise 0. Both
        must be the beginning of a batch or the end of the log. Owner only.
        """
        active = self.local.active
        first = active.recent_position(begin)
        last = active.size if end >= self.local.log_end_offset else active.recent_position(end)
        return last - first if first >= 0 else 0

    # Producers

    def active_producers(self) -> list[ProducerEntry]:
        return list(self.producers.entries.values())

    def expire_producers(self, now: Moment, expiration_ms: int, at_most: int | None = None) -> Iterator[int]:
        """Forget producers idle for `producer.id.expiration.ms`; yields how many, after every `at_most` of them."""
        return self.producers.expire(now, expiration_ms, at_most)

    def write_snapshots(self) -> None:
        """Write the producer snapshots that were taken. Call it in a thread."""
        self.snapshots.write()

    # Deletion at the beginning: DeleteRecords and retention

    def advance_log_start_offset(self, offset: int) -> bool:
        """Delete the records below `offset`, and the segments that contain no others.

        Returns False if nothing changes. Raises Refused above the log end offset; the caller checks the high watermark.
        """
        moved = self.move_log_start_offset(offset)
        if moved:
            self._retention.delete_below(offset)
        return moved

    def move_log_start_offset(self, offset: int) -> bool:
        """Delete records like `advance_log_start_offset`, but keep the segments until `drop_old_segments`, since
        deleting many takes a while.
        """
        if offset > self.local.log_end_offset:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} since it is "
                f"larger than the log end offset {self.local.log_end_offset}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def drop_old_segments(self, most: int) -> int:
        """Delete up to `most` segments that end below the log start offset, oldest first; returns how many. A segment,
        and those after it, must stay while the producer snapshot of its successor is not written yet.
        """
        later = self.local.segments.base_offsets[most:]
        return self._retention.delete_below(min(self.log_start_offset, later[0]) if later else self.log_start_offset)

    @property
    def waits_for_snapshots(self) -> bool:
        """Whether segments below the log start offset stay until a producer snapshot is written."""
        return self._retention.waits_for_snapshot(self.log_start_offset)

    def retention_start_offset(self, now_ms: int, high_watermark: int) -> Offset:
        """Where the log should begin by `retention.ms` and `retention.bytes`. Call it in a thread: it reads indexes."""
        return self._retention.start_offset(self.log_start_offset, now_ms, high_watermark)

    def delete_old_segments(self, start_offset: int, *, now_ms: int) -> int:
        """Apply the result of `retention_start_offset`; returns how many segments were deleted. If all were, a new
        empty segment is created.
        """
        if start_offset >= self.local.log_end_offset and self.local.active.size:
            self.roll(now_ms=now_ms)
        start_offset = min(start_offset, self.local.log_end_offset)
        self.move_log_start_offset(start_offset)
        return self._retention.delete_below(start_offset)

    # Durability

    def flush(self, up_to: int | None = None) -> Offset:
        """Sync everything appended so far; returns the new recovery point. Blocks: call it in a thread. With `up_to`,
        the base offset of a segment, later segments are not synced.

        Many appends share one sync; those that arrive while it runs are covered by the next.
        """
        return self.local.flush(up_to, self.state.persist_leader_epochs)

    def maintain(self, now_ms: int) -> int:
        """Write producer snapshots, and remove files whose `file.delete.delay.ms` has passed on the steady clock;
        returns how many. Safe in any thread.
        """
        if self.local.deleted:
            return 0
        self.snapshots.write()
        return self.local.delete_due_files(now_ms)

    def close(self) -> None:
        """Close cleanly: complete the indexes, write a producer snapshot, sync everything."""
        self.directory.check_online()
        local = self.local
        if local.truncation_due:  # the next start finds the records that are still there, and their producers
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition} is truncated only in part")
        try:
            local.active.complete_indexes(self.directory.files)
            end = local.log_end_offset
            if self.state.write_final_snapshot(end):
                local.unsynced.names = True
            if local.unsynced.names:
                self.snapshots.sync(end)
            if local.recovery_point < end or local.unsynced:
                local.unsynced.add_indexes(local.active)
                self.flush()
            self.state.persist_leader_epochs()
        except OSError as error:
            raise self.directory.fail(error, f"closing {self.topic_partition}") from error
        local.abandon()

    def delete(self) -> None:
        """Stop all writes, since the partition is deleted. The caller removes the folder."""
        self.local.deleted = True
        self.snapshots.stop()  # a new log may soon use the folder's name
        self.local.abandon()

    def abandon(self) -> None:
        """Close every file without writing, because the log's directory is offline."""
        self.local.abandon()

    # Moves to another directory

    def rename_folder(self, folder: str) -> None:
        """Rename the folder. The next flush makes the name durable. OSError leaves everything unchanged."""
        self.directory.files.rename(self.folder, folder)
        self.folder_renamed(folder)

    def folder_renamed(self, folder: str) -> None:
        """Use the folder's new name: reads that begin from now on find its files there."""
        self.folder = folder
        self.local.folder_renamed(folder)
        self.state.folder_renamed(folder)

    def take_over(self, other: "Log") -> None:
        """Replace `other`, a log with the same records, and use its state that is not in the records, such as pending
        verifications and a leader epoch without a record. For the owner of both.
        """
        self.producers = self.state.producers = other.producers
        self.leader_epochs.take_over(other.leader_epochs)
