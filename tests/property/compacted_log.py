"""One log on files that forget, with the history of what was done to it, and the steps that tests of compaction take.

A step changes the log and the history alike; `check` holds the one against the other. Cleanings go as in a broker: the
book says whether the log is dirty, the cleaner cleans, the owner swaps segments, the book writes down how far it came.
"""

import hashlib
import random
from collections.abc import Sequence

from kaspar.base.clock import ManualClock
from kaspar.base.ids import random_uuid
from kaspar.config import LogConfig
from kaspar.records import Codec, Record, build_batch, iter_records
from kaspar.records.compaction import SLOT_BYTES
from kaspar.storage import Appended, LogManager, prepare
from kaspar.storage.cleaning.cleaner import Cleaner, CleanerSettings
from kaspar.storage.cleaning.manager import LogCleanerManager
from kaspar.storage.cleaning.offsets_to_clean import offsets_to_clean
from kaspar.storage.cleaning.throttle import UNLIMITED, Throttle
from kaspar.storage.disk.file_names import CLEANED, SEGMENT_SUFFIXES, SWAP
from tests.property.compaction_model import (
    History,
    MortalFiles,
    batches_of,
    check_committed_reader,
    check_compacted,
    check_content,
    check_lookups,
)
from tests.property.transactions_model import Batch, Transactions
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    broker_config,
    end_transaction,
    log_config,
    make_batch,
    open_manager,
    verify,
)

BROKER = broker_config("/data")
KEYS_WITHOUT = log_config(cleanup_policy="delete")
"""Before a topic was compacted it took records without a key."""

KEYS = [b"anna", b"bert", b"cleo", b"dora"]

KeyAndValue = tuple[bytes | None, bytes | None]


class CompactedLog:
    def __init__(self, config: LogConfig) -> None:
        self.files = MortalFiles()
        self.clock = ManualClock(NOW_MS)
        self.config = config
        self.history = History()
        self.start = 0
        self.checkpointed_start = 0
        self.synced = 0
        self.epoch = 0
        self.manager = self._open()
        self.log = self.manager.create(PARTITION, random_uuid(), config)
        self.cleaner_manager = LogCleanerManager(self.manager)

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def _open(self) -> LogManager:
        return open_manager(BROKER, self.config, self.files, self.clock)

    # What producers do

    def append(
        self,
        records: Sequence[KeyAndValue],
        *,
        codec: Codec = Codec.NONE,
        producer_id: int = -1,
        transactional: bool = False,
        age_ms: int = 0,
    ) -> None:
        """Older producers wrote `age_ms` ago."""
        epoch, sequence = self.next_of(producer_id) if producer_id >= 0 else (-1, -1)
        if transactional:
            verify(self.log, producer_id, epoch=epoch, base_sequence=sequence, version_2=False)
        timestamp = self.now_ms - age_ms
        batch = build_batch(
            [
                Record(timestamp - at % 2, key, value, (("at", b"%d" % at),) if at % 3 == 0 else ())
                for at, (key, value) in enumerate(records)
            ],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        config = self.config if all(key is not None for key, _ in records) else KEYS_WITHOUT
        base_offset = self.end
        prepared = prepare(batch, 0, len(batch), config, self.now_ms)
        appended = self.log.append_as_leader(prepared, leader_epoch=self.epoch, now_ms=self.now_ms)
        assert (appended.base_offset, appended.duplicate) == (base_offset, False)
        content = bytes(prepared.buffer[prepared.start : prepared.end])
        self.history.batches.append(
            Batch(base_offset, content, len(records), producer_id, sequence, epoch=epoch, transactional=transactional)
        )

    def end_transaction(self, producer_id: int, *, committed: bool, version_2: bool) -> None:
        epoch, _ = self.next_of(producer_id)
        epoch += version_2
        offset = self.end
        end_transaction(
            self.log, producer_id, committed=committed, epoch=epoch, transaction_version=2 if version_2 else 0
        )
        content = bytes(self.log.read(offset, 1000, offset + 1))
        self.history.batches.append(Batch(offset, content, 1, producer_id, epoch=epoch, aborts=not committed))

    def of_producer(self, producer_id: int) -> list[Batch]:
        return [batch for batch in self.history.batches if batch.producer_id == producer_id]

    def next_of(self, producer_id: int) -> tuple[int, int]:
        """The epoch and sequence that a producer goes on with."""
        mine = self.of_producer(producer_id)
        epoch = mine[-1].epoch if mine else 0
        sent = [batch for batch in mine if batch.aborts is None and batch.epoch == epoch]
        return epoch, sent[-1].base_sequence + sent[-1].count if sent else 0

    def last_sent(self, producer_id: int) -> Batch | None:
        """The last batch of a producer, unless somebody asked for it to be deleted: then it may not be known."""
        sent = [batch for batch in self.of_producer(producer_id) if batch.aborts is None]
        return sent[-1] if sent and sent[-1].base_offset >= self.history.deleted_below else None

    def send_again(self, batch: Batch, *, skip: int = 0) -> Appended:
        """The sequences of a batch of an idempotent producer once more, or later ones."""
        again = make_batch(
            [b"again"] * batch.count,
            producer_id=batch.producer_id,
            producer_epoch=batch.epoch,
            base_sequence=batch.base_sequence + skip,
        )
        prepared = prepare(again, 0, len(again), self.config, self.now_ms)
        return self.log.append_as_leader(prepared, leader_epoch=self.epoch, now_ms=self.now_ms)

    # What time does

    def flush(self) -> None:
        self.synced = self.log.flush()

    def checkpoint(self) -> None:
        self.manager.checkpoint()
        self.checkpointed_start = self.start

    def delete_records(self, before_offset: int) -> None:
        self.log.advance_log_start_offset(before_offset)
        self._starts_at(max(self.start, before_offset))

    def _starts_at(self, offset: int) -> None:
        self.start = offset
        self.history.deleted_below = max(self.history.deleted_below, offset)

    def apply_retention(self) -> None:
        """What goes of what was left is older than `retention.ms`."""
        left = [record for batch in batches_of(self.log, self.start) for record in batch.records]
        start = self.log.retention_start_offset(self.now_ms, self.end)
        self.log.delete_old_segments(start, now_ms=self.now_ms)
        gone = [record for record in left if self.start <= record.offset < start]
        assert all(self.now_ms - record.timestamp > self.config.retention_ms for record in gone)
        self._starts_at(max(self.start, start))

    # What the disk does

    def stop_and_start(self) -> None:
        self.manager.close()
        self.reopen()
        self.synced = self.end
        self.checkpointed_start = self.start

    def kill_and_start(self) -> None:
        """The process dies, the machine does not: nothing that was written is lost."""
        end = self.end
        self.manager.abandon()
        self.reopen()
        assert self.end == end

    def cut_the_power(self, rng: random.Random) -> None:
        """What was synced stays. Of the rest any batch may go: in a compacted log a start takes gaps for cleaned."""
        self.synced = max(self.synced, self.log.recovery_point)
        end = self.end
        self.manager.abandon()
        self.files.crash(rng)
        self.reopen()
        assert self.synced <= self.end <= end
        left = {batch.header.base_offset for batch in batches_of(self.log, self.start)}
        # What lies below the start was deleted, not lost: its producers may still be known.
        batches = [batch for batch in self.history.batches if batch.next_offset > self.start]
        self.history.lost([batch for batch in batches if batch.base_offset >= self.synced], left)

    def reopen(self) -> None:
        self.files.changes_left = None
        self.manager = self._open()
        log = self.manager.get(PARTITION)
        assert log is not None
        self.log = log
        self.cleaner_manager = LogCleanerManager(self.manager)
        assert self.checkpointed_start <= log.log_start_offset <= self.start
        self.start = log.log_start_offset
        self.check_no_leftovers()

    def check_no_leftovers(self) -> None:
        left = [name for name in self.files.listdir(self.log.folder) if name.endswith((CLEANED, SWAP))]
        assert not left

    # What the cleaner does

    def clean(self, *, keys: int = 1000, changes: int | None = None) -> bool:
        """Clean once, with a map of so many keys: whether the log was dirty. Killed before the nth change to a file."""
        self.log.producers.high_watermark_moved(self.end)
        stable = self.log.last_stable_offset(self.end)
        now_ms = self.now_ms
        to_clean = offsets_to_clean(self.log, None, stable, now_ms)
        assert to_clean.first_uncleanable_offset <= max(self.start, min(stable, self.log.segments.base_offsets[-1]))
        self._check_lag(to_clean.first_uncleanable_offset)
        self.files.changes_left = changes
        try:
            chosen = self.cleaner_manager.next_to_clean({PARTITION: stable}, now_ms)
            if chosen is None:
                self.files.changes_left = None
                return False
            cleaner = Cleaner(_settings(keys), Throttle(UNLIMITED, self.clock))
            cleaned = cleaner.clean(*chosen, now_ms, on_owner=lambda _, work: work())
            self.cleaner_manager.done(self.log, cleaned.next_dirty_offset)
        finally:
            self.history.cleaned(to_clean.first_uncleanable_offset, to_clean.first_uncleanable_offset, now_ms)
        self.files.changes_left = None
        assert chosen[1].first_dirty_offset < cleaned.next_dirty_offset <= to_clean.first_uncleanable_offset
        check_compacted(self.log, self.history, cleaned.next_dirty_offset)
        return True

    def _check_lag(self, first_uncleanable_offset: int) -> None:
        """What is younger than `min.compaction.lag.ms` is left alone."""
        lag_ms = self.config.min_compaction_lag_ms
        for batch in self.history.data_batches():
            if lag_ms and self.start <= batch.base_offset < first_uncleanable_offset:
                assert all(record.timestamp <= self.now_ms - lag_ms for record in records_of(batch))

    # What must hold

    def check(self) -> None:
        check_content(self.log, self.history, self.config.delete_retention_ms)
        check_committed_reader(self.log, self.history, self.start)
        self._check_last_stable_offset()

    def _check_last_stable_offset(self) -> None:
        """Exactly, as long as nothing was deleted: what deletions left may be all that is known of a transaction."""
        self.log.producers.high_watermark_moved(self.end)
        if not self.history.deleted_below:
            opened = Transactions.of(self.history.batches).open.values()
            expected = min((transaction.first_offset for transaction in opened), default=self.end)
            assert self.log.last_stable_offset(self.end) == expected

    def digest(self) -> dict[str, str]:
        """Of each file of the log and its indexes."""
        names = [name for name in self.files.listdir(self.log.folder) if name.endswith(SEGMENT_SUFFIXES)]
        paths = {name: f"{self.log.folder}/{name}" for name in names}
        return {name: hashlib.sha256(self.files.content(path)).hexdigest() for name, path in paths.items()}

    def check_thoroughly(self) -> None:
        self.check()
        check_lookups(self.log, [self.now_ms - age for age in range(0, 3000, 500)])
        for offset in range(self.start, self.end):
            check_committed_reader(self.log, self.history, offset)


def _settings(keys: int) -> CleanerSettings:
    """A map has room for twice as many as it may hold."""
    return CleanerSettings(dedupe_buffer_size=2 * keys * SLOT_BYTES, io_buffer_size=1 << 16, io_buffer_load_factor=0.5)


def records_of(batch: Batch) -> list[Record]:
    return list(iter_records(batch.content))


def filled() -> CompactedLog:
    """Several segments of every kind of record, cleaned once, and dirty again."""
    subject = CompactedLog(
        log_config(
            segment_bytes=500,
            index_interval_bytes=100,
            cleanup_policy="compact",
            delete_retention_ms=0,
            min_cleanable_dirty_ratio=0,
        )
    )
    subject.checkpoint()
    for round_number in range(2):
        for number in range(6):
            value = None if number % 5 == 4 else b"value %d" % number
            codec = list(Codec)[number % len(Codec)]
            records = [(KEYS[number % 4], value), (KEYS[(number + 1) % 4], b"other")]
            subject.append(records, codec=codec, producer_id=7 if number % 2 else -1)
            subject.append(records[:1], producer_id=20 + number % 3, transactional=True)
            if number % 3 == 2:
                for producer_id in (20, 21, 22):
                    subject.end_transaction(producer_id, committed=producer_id != 21, version_2=producer_id == 22)
            subject.clock.advance(100)
        subject.log.roll(now_ms=subject.now_ms)
        if round_number == 0:
            subject.clean()
    return subject
