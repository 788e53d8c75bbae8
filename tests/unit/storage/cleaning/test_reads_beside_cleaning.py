"""Readers in threads of their own, while the log under them is cleaned again and again."""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.records import BatchHeader, Record, build_batch, iter_headers, iter_records
from kaspar.storage import AbortedTransaction, Log, OsFiles
from kaspar.storage.cleaning.cleaner import Cleaner, CleanerSettings
from kaspar.storage.cleaning.manager import LogCleanerManager
from kaspar.storage.cleaning.throttle import UNLIMITED, Throttle
from tests.unit.storage.logs import NOW_MS, LogFolder, append, end_transaction, log_config, make_batch, verify

CONFIG = log_config(
    cleanup_policy="compact",
    segment_bytes=1500,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0,
    delete_retention_ms=0,
    file_delete_delay_ms=0,
)
ROUNDS = 12
BATCHES_A_ROUND = 120
ABORTED = -1

Batches = Iterator[tuple[BatchHeader, bytes, bool]]


class WithoutSyncs(OsFiles):
    """Quicker: what a disk keeps is not what this is about."""

    fsync = staticmethod(lambda fd: None)

    def fsync_dir(self, path: str) -> None:
        pass


class Subject:
    """A log of keys whose values only grow, some of them written in transactions; aborted ones are -1."""

    def __init__(self, folder: LogFolder) -> None:
        self.log = folder.log
        self.last: dict[bytes, int] = {}
        self.done = False
        self._manager = LogCleanerManager(folder.manager)
        self._cleaner = Cleaner(CleanerSettings(1 << 16, 1 << 12, 0.9), Throttle(UNLIMITED, ManualClock()))
        self._rng = random.Random(5)
        self._written = 0
        self._sequences = {7: 0, 8: 0}

    def write_some(self) -> None:
        for _ in range(BATCHES_A_ROUND):
            self._written += 1
            key = b"key %d" % self._rng.randrange(20)
            if self._rng.random() < 0.6:
                append(self.log, make_batch([b"%d" % self._written], key=key))
            elif not self._write_in_transaction(key):
                continue
            self.last[key] = self._written

    def _write_in_transaction(self, key: bytes) -> bool:
        committed = self._rng.random() < 0.4
        producer_id = self._rng.choice(list(self._sequences))
        sequence = self._sequences[producer_id]
        self._sequences[producer_id] += 1
        verify(self.log, producer_id, base_sequence=sequence, version_2=False)
        value = b"%d" % (self._written if committed else ABORTED)
        batch = make_batch(
            [value], key=key, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        append(self.log, batch)
        end_transaction(self.log, producer_id, committed=committed)
        self.log.producers.high_watermark_moved(self.log.log_end_offset)
        return committed

    def clean(self) -> None:
        log = self.log
        chosen = self._manager.next_to_clean({log.topic_partition: log.log_end_offset}, NOW_MS)
        if chosen is not None:
            cleaned = self._cleaner.clean(*chosen, NOW_MS, on_owner=lambda _, work: work())
            self._manager.done(log, cleaned.next_dirty_offset)

    def scan(self, batches: Callable[[Log, int, int], Batches]) -> None:
        """Read to the end of the log as it is by then: the last value of every key from before, or a later one, is
        there.
        """
        log = self.log
        expected = dict(self.last)
        found: dict[bytes, int] = {}
        position = log.log_start_offset
        while position < (end := log.last_stable_offset(log.log_end_offset)):
            before = position
            for header, batch, aborted in batches(log, position, end):
                assert header.last_offset >= position
                position = header.next_offset
                if not header.is_control and not aborted:
                    for record in iter_records(batch):
                        found[record.key or b""] = int(record.value or b"")
            if position == before:
                position = end  # nothing is left of what was there
        assert all(found.get(key, ABORTED) >= value for key, value in expected.items())


def uncommitted(log: Log, position: int, end: int) -> Batches:
    data = bytes(log.read(position, 1000, end))
    for at, header in iter_headers(data, 0, len(data)):
        batch = data[at : at + header.size]
        yield header, batch, not header.is_control and any(_is_aborted(record) for record in iter_records(batch))


def committed(log: Log, position: int, end: int) -> Batches:
    records, aborted = log.read_committed(position, 1000, end)
    data = bytes(records)
    for at, header in iter_headers(data, 0, len(data)):
        batch = data[at : at + header.size]
        left_out = any(_covers(transaction, header) for transaction in aborted)
        if not header.is_control and not left_out:
            assert not any(_is_aborted(record) for record in iter_records(batch)), "an aborted record was shown"
        yield header, batch, left_out


def _is_aborted(record: Record) -> bool:
    return record.value == b"%d" % ABORTED


def _covers(transaction: AbortedTransaction, header: BatchHeader) -> bool:
    within = transaction.first_offset <= header.base_offset <= transaction.last_offset
    return header.is_transactional and header.producer_id == transaction.producer_id and within


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns often, so that they meet at more places."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty_threads")
def test_readers_beside_a_cleaner_miss_no_last_value_and_see_no_aborted_record(tmp_path: Path) -> None:
    subject = Subject(LogFolder(tmp_path, CONFIG, WithoutSyncs()))
    problems: list[BaseException] = []
    scans = [0, 0, 0]

    def repeat(number: int, work: Callable[[], object]) -> None:
        try:
            while not subject.done or not scans[number]:
                work()
                scans[number] += 1
        except BaseException as problem:
            problems.append(problem)

    def look_up() -> None:
        subject.log.offset_for_timestamp(NOW_MS)
        subject.log.offset_of_max_timestamp()
        subject.log.retention_start_offset(NOW_MS, subject.log.log_end_offset)
        subject.log.flush()
        subject.log.maintain(NOW_MS)

    subject.write_some()
    works = [lambda: subject.scan(uncommitted), lambda: subject.scan(committed), look_up]
    threads = [threading.Thread(target=repeat, args=entry) for entry in enumerate(works)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(ROUNDS):
            subject.write_some()
            subject.clean()
    finally:
        subject.done = True
        for thread in threads:
            thread.join(60)
    if problems:
        raise problems[0]
    assert subject.log.local.swap_count > ROUNDS
    assert subject.log.directory.online


class BeforeOpening(WithoutSyncs):
    """Lets something happen just before the next file is opened."""

    hook: Callable[[], None] | None = None

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        return super().open(path, write=write, create=create)


def test_a_batch_that_lies_further_back_in_the_cleaned_segment_is_not_passed_over(tmp_path: Path) -> None:
    """Tombstones take more bytes once it is noted when they go, so the last one lies behind the end of the old file."""
    files = BeforeOpening()
    folder = LogFolder(tmp_path, log_config(cleanup_policy="compact", min_cleanable_dirty_ratio=0), files)
    log = folder.log
    for number in range(40):
        tombstone = build_batch([Record(NOW_MS, b"%d" % number, None)])
        append(log, tombstone)
    log.roll(now_ms=NOW_MS)
    append(log, make_batch([b"later"]))
    old = log.segments.all[0]
    files.hook = Subject(folder).clean
    records = list(iter_records(log.read(39, 1000, log.log_end_offset)))
    assert [record.offset for record in records] == [39]
    assert log.segments.all[0].size > old.size + len(tombstone), "otherwise this proves nothing"
    assert log.directory.readers.pin(old) is None, "nobody asks for it again"
