"""Rebuilds producer state from the log: the newest usable snapshot, then the batches after it."""

from collections.abc import Callable, Iterable

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.records import BatchHeader, ControlType, iter_records, read_end_transaction_marker
from kaspar.storage.disk.file_names import LOG, OFFSET_INDEX
from kaspar.storage.disk.files import Files
from kaspar.storage.producers.snapshot_file import DamagedSnapshot, read_snapshot
from kaspar.storage.producers.state import CompletedTransaction, ProducerState
from kaspar.storage.segments.batch_scan import BatchScan
from kaspar.storage.segments.indexes import OffsetIndex
from kaspar.storage.segments.segment import Segment

log = get_log(__name__)


def remember_batch(producers: ProducerState, header: BatchHeader, batch: memoryview) -> CompletedTransaction | None:
    """Apply a batch that is already in the log, or that a leader has accepted. Returns the transaction that it
    completed, if it is a marker.
    """
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.remember(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
            header.last_offset,
            header.max_timestamp,
            header.is_transactional,
        )
        return None
    for record in iter_records(batch):
        try:
            marker = read_end_transaction_marker(record)
        except MalformedBytes:
            return None  # a control record of another kind decides nothing here
        return producers.remember_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            header.base_offset,
            record.timestamp,
            aborted=marker.control_type is ControlType.ABORT,
        )
    return None  # compaction has removed the marker, and the whole transaction before it


def load_newest_snapshot(
    files: Files, folder: str, offsets: Iterable[int], up_to: int, producers: ProducerState, begin: int
) -> int:
    """Load the newest valid snapshot not above `up_to`, or an empty state. Returns its offset, or `begin`."""
    for offset in sorted((offset for offset in offsets if begin <= offset <= up_to), reverse=True):
        try:
            producers.restore(read_snapshot(files, folder, offset))
        except (DamagedSnapshot, FileNotFoundError) as error:
            log.warning("a producer snapshot cannot be used", folder=folder, offset=offset, error=error)
            continue
        return offset
    producers.clear()
    return begin


def replay(
    files: Files,
    segments: Iterable[Segment],
    begin: int,
    end: int,
    producers: ProducerState,
    decided: Callable[[CompletedTransaction], None] | None = None,
) -> None:
    """Apply the batches from offset `begin` up to `end`, which are known to be valid. `decided` is called with each
    transaction that a marker among them completed.
    """
    ordered = list(segments)
    for slot, segment in enumerate(ordered):
        following = ordered[slot + 1].base_offset if slot + 1 < len(ordered) else end
        if following <= begin or segment.base_offset >= end:
            continue
        position = 0
        if segment.base_offset < begin:
            index = segment.index or OffsetIndex.load(files, segment.path(OFFSET_INDEX))
            position = index.lookup(begin - segment.base_offset - 1)
        fd = files.open(segment.path(LOG))
        try:
            for _, header, batch in BatchScan(files, fd, position, segment.size):
                if header.base_offset >= end:
                    break
                if header.base_offset >= begin:
                    completed = remember_batch(producers, header, batch)
                    if completed is not None and decided is not None:
                        decided(completed)
        finally:
            files.close(fd)
