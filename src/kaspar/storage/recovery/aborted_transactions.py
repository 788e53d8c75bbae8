"""Opens the indexes of aborted transactions in a folder, and rebuilds those that a crash or a bad disk has damaged.

Entries below the recovery point were synced and are kept, unless the file is damaged: then they are rebuilt from the
log, beginning with the producer state at the base offset of the segment. Entries above are rebuilt while the log is
checked.
"""

from collections.abc import Iterable, Sequence

from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.storage.disk.file_names import TRANSACTION_INDEX
from kaspar.storage.disk.files import DISK_FULL, Files
from kaspar.storage.producers import replay
from kaspar.storage.producers.state import CompletedTransaction, ProducerState
from kaspar.storage.segments.segment import Segment
from kaspar.storage.segments.transaction_index import TransactionIndex

log = get_log(__name__)


class AbortedRecovery:
    def __init__(
        self, files: Files, topic_partition: TopicPartition, segments: Sequence[Segment], snapshots: Iterable[int]
    ) -> None:
        self._files = files
        self._topic_partition = topic_partition
        self._segments = segments
        self._snapshots = snapshots
        self._damaged: set[Segment] = set()

    def look_at(self, base_offsets: set[int]) -> None:
        """Read the files that exist, which are few."""
        for segment in self._segments:
            if segment.base_offset in base_offsets:
                index = TransactionIndex.load(self._files, segment.path(TRANSACTION_INDEX))
                size = self._files.size(segment.path(TRANSACTION_INDEX))
                segment.aborted_count = len(index)
                if size != index.memory_bytes or not index.is_sound(segment.base_offset):
                    self._damaged.add(segment)

    def repair(self, slot: int, end: int) -> bool:
        """Rebuild the index of a valid segment that ends at `end`, if it is damaged. Returns whether it was."""
        segment = self._segments[slot]
        if segment not in self._damaged:
            return False
        self.finish(segment, self._rebuilt(slot, end))
        return True

    def kept(self, slot: int, end: int) -> TransactionIndex:
        """The entries up to `end` of a segment that will be checked from there on."""
        segment = self._segments[slot]
        if segment in self._damaged:
            return self._rebuilt(slot, end) if end > segment.base_offset else TransactionIndex()
        index = segment.loaded_aborted(self._files)
        index.cut(self._files, segment.path(TRANSACTION_INDEX), end)
        return index

    def finish(self, segment: Segment, index: TransactionIndex) -> None:
        """Write the index of a segment, which is complete."""
        segment.aborted_count = len(index)
        segment.aborted = None
        try:
            if segment in self._damaged:
                index.replace_file(self._files, segment.path(TRANSACTION_INDEX))
                self._damaged.discard(segment)
            else:
                index.write(self._files, segment.path(TRANSACTION_INDEX))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            # As with appends to a full disk, the entries stay in memory, and no sync succeeds until they are written.
            segment.aborted = index
            log.warning("no space is left for an index", file=segment.path(TRANSACTION_INDEX))

    def _rebuilt(self, slot: int, end: int) -> TransactionIndex:
        segment = self._segments[slot]
        log.warning("rebuilding an index of aborted transactions", file=segment.path(TRANSACTION_INDEX))
        producers = ProducerState(self._topic_partition)
        begin = replay.load_newest_snapshot(
            self._files,
            segment.folder,
            self._snapshots,
            segment.base_offset,
            producers,
            self._segments[0].base_offset,
        )
        index = TransactionIndex()

        def decided(transaction: CompletedTransaction) -> None:
            entry = transaction.index_entry
            if entry is not None and entry.last_offset >= segment.base_offset:
                index.append(entry)

        replay.replay(self._files, self._segments[: slot + 1], begin, end, producers, decided)
        return index
