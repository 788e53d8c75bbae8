"""Rewrites a group of old segments as one, without the records that a later record of the same key replaces.

The new segment's files end in `.cleaned` until they replace the old ones. They are synced before they are returned; if
anything fails before, they are removed.
"""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.records import BatchHeader, read_header
from kaspar.records.compaction import BatchFate, BatchFilter, IndexPoints, KeyMap
from kaspar.storage.cleaning.chunks import Chunk, read_chunks
from kaspar.storage.cleaning.errors import DamagedSegment, OverfullSegment
from kaspar.storage.cleaning.throttle import Pace
from kaspar.storage.cleaning.transactions import CleanedTransactions, aborted_between, control_type_of
from kaspar.storage.disk.file_names import CLEANED, LOG, OFFSET_INDEX, SEGMENT_SUFFIXES, TIME_INDEX, TRANSACTION_INDEX
from kaspar.storage.disk.files import Bytes, Files, sync_file, unlink_if_there, write_all
from kaspar.storage.log import Log
from kaspar.storage.producers.entry import ProducerEntry
from kaspar.storage.segments.indexes import OffsetIndex, TimeIndex, create_index_file
from kaspar.storage.segments.segment import CLOSED, Segment
from kaspar.storage.segments.transaction_index import TransactionIndex

_LARGEST_RELATIVE_OFFSET = 0x7FFF_FFFF
_LARGEST_POSITION = 0x7FFF_FFFF


class Rewritten(NamedTuple):
    segment: Segment
    """Its files still end in `.cleaned`."""
    records_read: int
    bytes_read: int
    records_kept: int
    bytes_kept: int
    records_without_key: int


def rewrite(
    owner: Log,
    segments: Sequence[Segment],
    keys: KeyMap,
    transactions: CleanedTransactions,
    pace: Pace,
    *,
    now_ms: int,
    wall_ms: int | None = None,
) -> Rewritten:
    """Create one segment from `segments`, which are consecutive and take no appends. `keys` is filled, and
    `transactions` has seen every segment before them. Raises CleaningStopped, Uncleanable or OSError.

    `now_ms` decides whether a delete horizon has passed. If it lags behind a wall clock that is not believed yet, new
    horizons count from `wall_ms`: if the wall clock turns out to be right, delete.retention.ms begins there.
    """
    new = NewSegment(owner.directory.files, owner.folder, segments[0].base_offset, owner.config.index_interval_bytes)
    try:
        new.create(now_ms)
        transactions.index = new.aborted
        latest_now_ms = now_ms if wall_ms is None else max(now_ms, wall_ms)
        rewriting = _Rewriting(owner, keys, transactions, pace, new, now_ms, latest_now_ms)
        for segment in segments:
            rewriting.add(segment)
        return rewriting.finish()
    except BaseException:
        new.discard()
        raise
    finally:
        transactions.index = None


class _Rewriting:
    def __init__(
        self,
        owner: Log,
        keys: KeyMap,
        transactions: CleanedTransactions,
        pace: Pace,
        new: "NewSegment",
        now_ms: int,
        latest_now_ms: int,
    ) -> None:
        self._owner = owner
        self._transactions = transactions
        self._pace = pace
        self._new = new
        self._now_ms = now_ms
        self._bytes_read = 0
        self._marker_producers: dict[int, int] = {}
        last_data_offsets = []
        for entry in owner.active_producers():
            last_offset = _last_data_offset(entry)
            if last_offset >= 0:
                last_data_offsets.append(last_offset)
            else:
                self._marker_producers[entry.producer_id] = entry.producer_epoch
        self._filter = BatchFilter(
            keys,
            last_data_offsets,
            keys.latest_offset + 1,
            now_ms,
            delete_horizon_ms=latest_now_ms + owner.config.delete_retention_ms,
        )

    def add(self, segment: Segment) -> None:
        owner = self._owner
        slot = owner.segments.slot_of(segment.base_offset)
        ends = owner.segments.base_offsets[slot + 1 : slot + 2]
        end = ends[0] if ends else owner.log_end_offset
        self._transactions.add_aborted(aborted_between(owner, segment.base_offset, end))
        with contextlib.closing(read_chunks(owner, segment, self._pace)) as chunks:
            for chunk in chunks:
                try:
                    self._filter_chunk(chunk)
                except MalformedBytes as error:
                    raise DamagedSegment(segment.path(LOG), chunk.position, str(error)) from error
                self._bytes_read += chunk.end
                kept = self._filter.take()
                if kept:
                    self._new.append(kept)
                    self._pace.spent(len(kept))

    def finish(self) -> Rewritten:
        return Rewritten(
            segment=self._new.finish(),
            records_read=self._filter.records_read,
            bytes_read=self._bytes_read,
            records_kept=self._filter.records_kept,
            bytes_kept=self._new.size,
            records_without_key=self._filter.records_without_key,
        )

    def _filter_chunk(self, chunk: Chunk) -> None:
        position = 0
        while (position := self._filter.filter_plain(chunk.data, position, chunk.end)) < chunk.end:
            header = read_header(chunk.data, position)
            self._filter.filter_batch(chunk.data, position, header, self._fate_of(chunk.data, position, header))
            position += header.size

    def _fate_of(self, data: bytes, position: int, header: BatchHeader) -> BatchFate:
        if not header.is_control:
            return BatchFate(drops_records=self._transactions.is_aborted(header))
        ends_nothing = self._transactions.has_nothing_to_end(header, control_type_of(data, position, header))
        delete_horizon_ms = header.delete_horizon_ms
        return BatchFate(
            drops_records=ends_nothing and delete_horizon_ms is not None and delete_horizon_ms <= self._now_ms,
            ends_nothing=ends_nothing,
            # If a producer has no batch left, only the marker contains its epoch.
            keeps_empty=self._marker_producers.get(header.producer_id) == header.producer_epoch,
        )


def _last_data_offset(entry: ProducerEntry) -> int:
    """Copies the batches first, since the owner of the log may change the entry at any moment."""
    batches = tuple(entry.batches)
    return batches[-1].last_offset if batches else -1


class NewSegment:
    """The `.cleaned` files of a segment while they are written."""

    def __init__(self, files: Files, folder: str, base_offset: int, index_interval_bytes: int) -> None:
        self._files = files
        self._folder = folder
        self._base_offset = base_offset
        self._points = IndexPoints(index_interval_bytes)
        self._index = OffsetIndex()
        self._time_index = TimeIndex()
        self._fd = CLOSED
        self.aborted = TransactionIndex()
        self.size = 0

    def create(self, now_ms: int) -> None:
        self._segment = Segment(self._folder, self._base_offset, 0, created_ms=now_ms)
        self.discard()
        self._fd = self._files.open(self._path(LOG), create=True)
        create_index_file(self._files, self._path(OFFSET_INDEX))
        create_index_file(self._files, self._path(TIME_INDEX))

    def append(self, batches: Bytes) -> None:
        base_offset = self._base_offset
        if self.size + len(batches) > _LARGEST_POSITION:
            raise OverfullSegment(self._segment.path(LOG), _LARGEST_POSITION)
        for last_offset, position, max_timestamp, offset_of_max_timestamp in self._points.add(batches, self.size):
            self._index.append(last_offset - base_offset, position)
            self._time_index.maybe_append(max_timestamp, offset_of_max_timestamp - base_offset)
        assert self._points.last_offset - base_offset <= _LARGEST_RELATIVE_OFFSET, "a group spans too many offsets"
        write_all(self._files, self._fd, batches, self.size)
        self.size += len(batches)
        self._index.write(self._files, self._path(OFFSET_INDEX), everything=False)
        self._time_index.write(self._files, self._path(TIME_INDEX), everything=False)

    def finish(self) -> Segment:
        """Complete and sync every file."""
        files, segment = self._files, self._segment
        if self._points.max_timestamp >= 0:
            relative_offset = self._points.offset_of_max_timestamp - self._base_offset
            self._time_index.maybe_append(self._points.max_timestamp, relative_offset)
        self._index.write(files, self._path(OFFSET_INDEX), everything=True)
        self._time_index.write(files, self._path(TIME_INDEX), everything=True)
        self.aborted.write(files, self._path(TRANSACTION_INDEX))
        files.fsync(self._fd)
        self._close()
        sync_file(files, self._path(OFFSET_INDEX))
        sync_file(files, self._path(TIME_INDEX))
        if len(self.aborted):
            sync_file(files, self._path(TRANSACTION_INDEX))
        segment.size = self.size
        segment.max_timestamp = self._points.max_timestamp
        segment.offset_of_max_timestamp = max(self._points.offset_of_max_timestamp, self._base_offset)
        segment.aborted_count = len(self.aborted)
        return segment

    def discard(self) -> None:
        """Remove the files."""
        with contextlib.suppress(OSError):
            self._close()
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(OSError):
                unlink_if_there(self._files, self._path(suffix))

    def _path(self, suffix: str) -> str:
        return self._segment.path(suffix) + CLEANED

    def _close(self) -> None:
        if self._fd != CLOSED:
            fd, self._fd = self._fd, CLOSED
            self._files.close(fd)
