"""What a compacted log may and must hold, worked out in the plainest way from the list of batches that were appended.

`History` is that list, and what is known of the cleanings so far: how far they reached, and when each offset was first
among what they went through. `check_content` holds a log's batches against it:

- a batch that stays has the place, the producer's fields, the codec and the epoch it had; a record that stays has its
  offset, timestamp, key, value and headers; the order is the order of offsets;
- a record goes only for one of four reasons: a later committed record has its key, its transaction was aborted, it has
  no key, or it is a tombstone that was kept for `delete.retention.ms` after a cleaning went through it;
- past what cleanings went through, every byte is as it was.

`check_compacted` is for a log that was cleaned up to an offset: below it, everything that has a reason to go is gone.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.records import BatchHeader, Record, crc_matches, iter_headers, iter_records
from kaspar.storage import Log
from kaspar.storage.disk.files import Bytes
from tests.property.transactions_model import Batch, CommittedReader, Transactions
from tests.unit.storage.forgetful_files import ForgetfulFiles

READ_BYTES = 400


class Found(NamedTuple):
    """A batch as it lies in a log."""

    header: BatchHeader
    content: bytes

    @property
    def records(self) -> list[Record]:
        return list(iter_records(self.content))


@dataclass
class History:
    batches: list[Batch] = field(default_factory=list)
    uncleanable_from: int = 0
    """No cleaning was allowed to take a record from here on."""
    untouched_from: int = 0
    """No cleaning has rewritten a segment from here on: a segment is rewritten whole."""
    first_cleaned_ms: dict[int, int] = field(default_factory=dict)
    """When the first of the cleanings that went through an offset began."""
    last_cleaned_ms: int = -1
    deleted_below: int = 0
    """Records below it somebody asked to be deleted: they may be gone or not."""

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def cleaned(self, uncleanable_from: int, untouched_from: int, now_ms: int) -> None:
        """A cleaning within these bounds took place now, or began and was cut short."""
        self.uncleanable_from = max(self.uncleanable_from, uncleanable_from)
        self.untouched_from = max(self.untouched_from, untouched_from)
        self.last_cleaned_ms = max(self.last_cleaned_ms, now_ms)
        for batch in self.batches:
            for offset in range(batch.base_offset, min(batch.next_offset, untouched_from)):
                self.first_cleaned_ms.setdefault(offset, now_ms)

    def lost(self, unsynced: list[Batch], left: set[int]) -> None:
        """A power cut: of what was not synced, and so never cleaned, only batches at these base offsets are left."""
        gone = {batch.base_offset for batch in unsynced} - left
        self.batches = [batch for batch in self.batches if batch.base_offset not in gone]

    def data_batches(self) -> list[Batch]:
        return [batch for batch in self.batches if batch.aborts is None]

    def committed_records(self) -> dict[int, Record]:
        """By offset, without those of aborted and of open transactions."""
        transactions = Transactions.of(self.batches)
        undecided = {batch.base_offset for opened in transactions.open.values() for batch in opened.batches}
        hidden = transactions.aborted_batches | undecided
        return {
            record.offset: record
            for batch in self.data_batches()
            if batch.base_offset not in hidden
            for record in iter_records(batch.content)
        }

    def last_of_each_key(self, end_offset: int) -> dict[bytes, Record]:
        """The last committed record of each key below an offset."""
        below = [record for offset, record in self.committed_records().items() if offset < end_offset]
        return {record.key: record for record in below if record.key is not None}

    def tombstone_may_go(self, offset: int, delete_retention_ms: int) -> bool:
        first = self.first_cleaned_ms.get(offset)
        return first is not None and self.last_cleaned_ms >= first + delete_retention_ms


def batches_of(log: Log, offset: int) -> list[Found]:
    """Every batch from the one that holds `offset` on, by as many reads as it takes."""
    found: list[Found] = []
    while part := log.read(offset, READ_BYTES, log.log_end_offset):
        whole = list(iter_headers(part, 0, len(part)))
        assert whole, "a read of anything gives a whole batch"
        for position, header in whole:
            assert header.last_offset >= offset, "offsets go up"
            assert crc_matches(part, position, header)
            found.append(Found(header, bytes(part[position : position + header.size])))
            offset = header.next_offset
    return found


def check_content(log: Log, history: History, delete_retention_ms: int) -> None:
    found = batches_of(log, log.log_start_offset)
    originals = {batch.base_offset: batch for batch in history.batches}
    kept: dict[int, Record] = {}
    for batch in found:
        kept |= _check_batch(batch, originals.get(batch.header.base_offset), history)
    _check_missing(kept, history, log.log_start_offset, delete_retention_ms)
    untouched = [
        batch.content
        for batch in history.batches
        if batch.base_offset >= history.untouched_from and batch.next_offset > log.log_start_offset
    ]
    last = [batch.content for batch in found if batch.header.base_offset >= history.untouched_from]
    assert last == untouched, "what no cleaning went through is as it was"


def _check_batch(found: Found, original: Batch | None, history: History) -> dict[int, Record]:
    assert original is not None, f"a batch at {found.header.base_offset} that nobody wrote"
    [(_, was)] = iter_headers(original.content, 0, len(original.content))
    now = found.header
    assert (now.base_offset, now.last_offset, now.leader_epoch) == (was.base_offset, was.last_offset, was.leader_epoch)
    assert (now.producer_id, now.producer_epoch, now.base_sequence) == (
        was.producer_id,
        was.producer_epoch,
        was.base_sequence,
    )
    assert (now.is_transactional, now.is_control) == (was.is_transactional, was.is_control)
    assert now.is_log_append_time == was.is_log_append_time
    records = found.records
    if records:
        assert now.codec is was.codec
        assert (
            now.max_timestamp == max(record.timestamp for record in records) or now.max_timestamp == was.max_timestamp
        )
    before = {record.offset: record for record in iter_records(original.content)}
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    for record in records:
        assert record == before[record.offset], "a record that stays is the record that it was"
    return {} if now.is_control else {record.offset: record for record in records}


def _check_missing(kept: dict[int, Record], history: History, start_offset: int, delete_retention_ms: int) -> None:
    aborted = Transactions.of(history.batches).aborted_batches
    last = {record.offset for record in history.last_of_each_key(history.uncleanable_from).values()}
    first_kept = max(start_offset, history.deleted_below)
    for batch in history.data_batches():
        for record in iter_records(batch.content):
            offset = record.offset
            if offset in kept or offset < first_kept:
                continue
            assert offset < history.uncleanable_from, f"offset {offset} is gone, where nothing may be taken yet"
            if batch.base_offset in aborted or record.key is None:
                continue
            if record.value is None and history.tombstone_may_go(offset, delete_retention_ms):
                continue
            assert offset not in last, f"the last committed value of {record.key!r}, at offset {offset}, is gone"


def check_compacted(log: Log, history: History, next_dirty_offset: int) -> None:
    """Of what lies below `next_dirty_offset`, up to which the log was cleaned, only the last of each key is left.

    A cleaning begins where the log starts. If a crash undoes a deletion, what was before that comes back as it was.
    """
    first = max(log.log_start_offset, history.deleted_below)
    last = {record.offset for record in history.last_of_each_key(next_dirty_offset).values()}
    for batch in batches_of(log, log.log_start_offset):
        if batch.header.is_control:
            continue
        for record in batch.records:
            if first <= record.offset < next_dirty_offset:
                assert record.offset in last, f"{record} has a reason to go, and is still there"


def committed_from(log: Log, offset: int, stable: int) -> list[tuple[int, bytes | None]]:
    """What a read_committed reader is shown that begins at `offset`, in small reads."""
    reader = CommittedReader()
    while (read := log.read_committed(offset, READ_BYTES, stable)).records:
        offset = reader.take(offset, read.records, read.aborted)
    return reader.seen


def check_committed_reader(log: Log, history: History, offset: int) -> None:
    """A reader from any offset on sees every committed record that is left there, and nothing else."""
    stable = log.last_stable_offset(log.log_end_offset)
    left = {
        record.offset for batch in batches_of(log, offset) if not batch.header.is_control for record in batch.records
    }
    assert committed_from(log, offset, stable) == [
        (at, record.value) for at, record in history.committed_records().items() if at in left and offset <= at < stable
    ]


def check_lookups(log: Log, timestamps: list[int]) -> None:
    """Every offset leads to the first batch that is not below it, and every time to the first record as young."""
    batches = batches_of(log, log.log_start_offset)
    for offset in range(log.log_start_offset, log.log_end_offset):
        first = next((batch for batch in batches if batch.header.last_offset >= offset), None)
        read = bytes(log.read(offset, 0, log.log_end_offset))
        assert read == (first.content if first is not None else b"")
    records = [record for batch in batches for record in batch.records if record.offset >= log.log_start_offset]
    for timestamp in timestamps:
        found = log.offset_for_timestamp(timestamp)
        expected = next((record for record in records if record.timestamp >= timestamp), None)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert (found.timestamp, found.offset) == (expected.timestamp, expected.offset)


class Killed(BaseException):
    """The process ended in the middle of its work. No handler of errors may stop it."""


class MortalFiles(ForgetfulFiles):
    """Files of a process that dies before its nth change to them; a write may be cut short by that."""

    def __init__(self) -> None:
        super().__init__()
        self.changes_left: int | None = None
        self.changes = 0

    def _maybe_die(self) -> None:
        if self.changes_left is not None:
            if self.changes_left <= 0:
                raise Killed
            self.changes_left -= 1
        self.changes += 1

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        if create:
            self._maybe_die()
        return super().open(path, write=write, create=create)

    def pwrite(self, fd: int, data: Bytes, position: int, /) -> int:
        try:
            self._maybe_die()
        except Killed:
            if self.changes_left == 0:
                self.changes_left = -1  # what comes after this writes nothing any more
                super().pwrite(fd, bytes(data[: len(data) // 2]), position)
            raise
        return super().pwrite(fd, data, position)

    def fsync(self, fd: int, /) -> None:
        self._maybe_die()
        super().fsync(fd)

    def truncate(self, fd: int, size: int, /) -> None:
        self._maybe_die()
        super().truncate(fd, size)

    def allocate(self, fd: int, size: int) -> None:
        self._maybe_die()
        super().allocate(fd, size)

    def rename(self, old: str, new: str) -> None:
        self._maybe_die()
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self._maybe_die()
        super().unlink(path)

    def fsync_dir(self, path: str) -> None:
        self._maybe_die()
        super().fsync_dir(path)
