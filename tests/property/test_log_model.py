"""The log against a list: whatever is done to it, in any order, with power cuts in between.

The model is the list of batches that were ever appended and not truncated, and how many of them are surely on the disk.
After a power cut the log must be a first part of that list, byte for byte, that holds at least what was synced.
What the list says about transactions the log must say too: how far everything is decided, and what was aborted. A
read_committed reader sees every record outside of transactions and of committed ones, and no other.
"""

import os
import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import random_uuid
from kaspar.records import iter_headers, iter_records
from kaspar.storage import WOULD_BLOCK, AbortedTransaction, Log, LogManager, prepare
from kaspar.storage.producers import snapshots
from tests.property.transactions_model import Batch, CommittedReader, Transactions
from tests.unit.storage.forgetful_files import ForgetfulFiles
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
TRANSACTIONAL = st.integers(20, 23)
FIRST_OF_VERSION_2 = 22
"""Transactions of these producers end with an epoch of their own."""


class LogAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.files = ForgetfulFiles()
        self.clock = ManualClock(NOW_MS)
        self.batches: list[Batch] = []
        self.synced = 0
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.small = pytest.MonkeyPatch()

    @initialize(segment_bytes=st.sampled_from([300, 600, 2_000]), interval=st.sampled_from([0, 100, 500]))
    def create(self, segment_bytes: int, interval: int) -> None:
        self.config = log_config(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.manager = self._open()
        self.log = self.manager.create(PARTITION, random_uuid(), self.config)

    def _open(self) -> LogManager:
        return open_manager(BROKER, self.config, self.files, self.clock)

    def _reopened(self) -> Log:
        log = self.manager.get(PARTITION)
        assert log is not None
        return log

    def _append(self, count: int, size: int, producer_id: int, base_sequence: int) -> None:
        buffer = make_batch(
            [bytes([len(self.batches) % 256]) * size] * count,
            timestamp=self.clock.now_ms(),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=base_sequence,
        )
        prepared = prepare(buffer, 0, len(buffer), self.config, self.clock.now_ms())
        appended = self.log.append_as_leader(prepared, leader_epoch=self.epoch, now_ms=self.clock.now_ms())
        assert not appended.duplicate
        assert (appended.base_offset, appended.last_offset) == (self.end, self.end + count - 1)
        self.batches.append(Batch(self.end, bytes(buffer), count, producer_id, base_sequence))
        self.end += count

    def _of_producer(self, producer_id: int) -> list[Batch]:
        return [batch for batch in self.batches if batch.producer_id == producer_id]

    def _is_surely_known(self, producer_id: int) -> bool:
        """A producer whose last batch was deleted may be forgotten in a crash, as it is in Kafka."""
        mine = [batch for batch in self._of_producer(producer_id) if batch.aborts is None]
        return bool(mine) and mine[-1].base_offset >= self.start

    def _next_sequence(self, producer_id: int) -> int:
        mine = self._of_producer(producer_id)
        return mine[-1].base_sequence + mine[-1].count if mine else 0

    @rule(count=st.integers(1, 5), size=st.integers(0, 30))
    def append(self, count: int, size: int) -> None:
        self._append(count, size, -1, -1)

    @rule(count=st.integers(1, 4), producer_id=st.integers(7, 9))
    def append_in_sequence(self, count: int, producer_id: int) -> None:
        self._append(count, 10, producer_id, self._next_sequence(producer_id))

    @rule(producer_id=st.integers(7, 9))
    def repeat_the_last_batch_of_a_producer(self, producer_id: int) -> None:
        if self._is_surely_known(producer_id):
            last = self._of_producer(producer_id)[-1]
            buffer = make_batch(
                [b"again"] * last.count, producer_id=producer_id, producer_epoch=0, base_sequence=last.base_sequence
            )
            prepared = prepare(buffer, 0, len(buffer), self.config, NOW_MS)
            appended = self.log.append_as_leader(prepared, leader_epoch=self.epoch, now_ms=NOW_MS)
            assert appended.duplicate
            assert (appended.base_offset, appended.last_offset) == (last.base_offset, last.next_offset - 1)

    @rule(producer_id=st.integers(7, 9), gap=st.integers(1, 3))
    def leave_out_a_sequence(self, producer_id: int, gap: int) -> None:
        if self._is_surely_known(producer_id):
            sequence = self._next_sequence(producer_id) + gap
            buffer = make_batch([b"too early"], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
            prepared = prepare(buffer, 0, len(buffer), self.config, NOW_MS)
            with pytest.raises(Refused) as refused:
                self.log.append_as_leader(prepared, leader_epoch=self.epoch, now_ms=NOW_MS)
            assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(count=st.integers(1, 3), producer_id=TRANSACTIONAL)
    def append_in_a_transaction(self, count: int, producer_id: int) -> None:
        epoch, sequence = self._next_of(producer_id)
        if sequence and not self._is_surely_known(producer_id):
            return  # where nothing but a marker of this epoch is left, sequences start over, as in Kafka
        verify(self.log, producer_id, epoch=epoch, base_sequence=sequence, version_2=False)
        buffer = make_batch(
            [bytes([len(self.batches) % 256]) * 10] * count,
            timestamp=self.clock.now_ms(),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        prepared = prepare(buffer, 0, len(buffer), self.config, self.clock.now_ms())
        appended = self.log.append_as_leader(prepared, leader_epoch=self.epoch, now_ms=self.clock.now_ms())
        assert (appended.base_offset, appended.duplicate) == (self.end, False)
        self.batches.append(
            Batch(self.end, bytes(buffer), count, producer_id, sequence, epoch=epoch, transactional=True)
        )
        self.end += count

    @rule(producer_id=TRANSACTIONAL, committed=st.booleans())
    def end_a_transaction(self, producer_id: int, committed: bool) -> None:
        epoch, _ = self._next_of(producer_id)
        version_2 = producer_id >= FIRST_OF_VERSION_2
        appended = end_transaction(
            self.log,
            producer_id,
            committed=committed,
            epoch=epoch + 1 if version_2 else epoch,
            transaction_version=2 if version_2 else 0,
        )
        assert appended.base_offset == self.end
        content = bytes(self.log.read(self.end, 1000, self.end + 1))
        epoch += version_2
        self.batches.append(Batch(self.end, content, 1, producer_id, epoch=epoch, aborts=not committed))
        self.end += 1

    def _next_of(self, producer_id: int) -> tuple[int, int]:
        """The epoch and sequence that a transactional producer goes on with."""
        mine = self._of_producer(producer_id)
        epoch = mine[-1].epoch if mine else 0
        sent = [batch for batch in mine if batch.aborts is None and batch.epoch == epoch]
        return epoch, sent[-1].base_sequence + sent[-1].count if sent else 0

    @rule(ms=st.integers(1, 1000))
    def time_passes(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule()
    def a_new_leader_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end
        self.synced = self.end

    @rule()
    def checkpoint(self) -> None:
        self.manager.checkpoint()

    @rule()
    def roll(self) -> None:
        self.log.roll(now_ms=self.clock.now_ms())

    @rule()
    def remove_old_files(self) -> None:
        self.manager.maintain(self.clock.now_ms() + 120_000)
        self.manager.maintain(self.clock.now_ms() + 240_000)

    @rule()
    def let_descriptors_go(self) -> None:
        self.log.local.close_writer()
        self.log.directory.readers.close_idle()

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """A follower never cuts below the start of the log, for that is not above the high watermark."""
        allowed = [number for number, batch in enumerate(self.batches) if batch.base_offset >= self.start]
        if not allowed:
            return
        kept = data.draw(st.sampled_from(allowed))
        offset = self.batches[kept].base_offset
        assert not self.manager.truncate_to({PARTITION: offset}, now_ms=self.clock.now_ms())
        del self.batches[kept:]
        self.end = offset
        self.synced = min(self.synced, offset)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start_offset(offset)
        self.start = max(self.start, offset)

    @rule()
    def stop_and_start(self) -> None:
        self.manager.close()
        self.manager = self._open()
        self.log = self._reopened()
        self.synced = self.end
        assert self.log.recovery_point == self.end

    @rule()
    def kill_and_start(self) -> None:
        """The process dies, the machine does not: nothing that was written is lost."""
        self.manager.abandon()
        self.manager = self._open()
        self.log = self._reopened()
        self._start_may_have_gone_back()

    @rule(seed=st.integers(0, 1 << 30))
    def cut_the_power(self, seed: int) -> None:
        self.manager.abandon()
        self.files.crash(random.Random(seed))
        self.manager = self._open()
        self.log = self._reopened()
        end = self.log.log_end_offset
        assert self.synced <= end <= self.end, "what was synced is there, and nothing that never was"
        self.batches = [batch for batch in self.batches if batch.next_offset <= end]
        # If nothing is left above the start, the log goes on there.
        assert end == self.log.log_start_offset or end == self.batches[-1].next_offset, "it ends with a whole batch"
        self.end = end
        self._start_may_have_gone_back()

    def _start_may_have_gone_back(self) -> None:
        """Deleted records may come back after a crash, if the new start was not written down: they are as they were."""
        assert self.log.log_start_offset <= self.start
        self.start = self.log.log_start_offset

    @invariant()
    def offsets_are_the_models(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_end_offset == self.end
            assert self.log.log_start_offset == self.start
            assert self.log.recovery_point <= self.end

    @invariant()
    def what_is_read_is_what_was_written(self) -> None:
        if hasattr(self, "log"):
            found = b""
            offset = self.start
            while part := self.log.read(offset, 300, self.end):
                whole = list(iter_headers(part, 0, len(part)))
                found += bytes(part[: whole[-1][0] + whole[-1][1].size])
                offset = whole[-1][1].next_offset
            assert found == b"".join(batch.content for batch in self.batches if batch.next_offset > self.start)

    @invariant()
    def what_is_undecided_holds_back_the_last_stable_offset(self) -> None:
        """Exactly, as long as nothing was deleted: what deletions left of a transaction may be all that is known of it
        after a crash, and if nothing is left of it, it holds no reader back.
        """
        if hasattr(self, "log"):
            self.log.producers.high_watermark_moved(self.end)
            first_kept = self.log.segments.base_offsets[0]
            at_least, at_most = self.end, self.end
            for transaction in Transactions.of(self.batches).open.values():
                kept = [batch.base_offset for batch in transaction.batches if batch.base_offset >= first_kept]
                at_least = min(at_least, max(transaction.first_offset, self.start))
                at_most = min(at_most, max(min(kept, default=self.end), self.start))
            assert at_least <= self.log.last_stable_offset(self.end) <= at_most
            assert self.start or at_least == at_most

    @invariant()
    def the_indexes_hold_every_aborted_transaction(self) -> None:
        if hasattr(self, "log") and self.start == 0:
            found: list[AbortedTransaction] = []
            for segment in self.log.segments.all:
                if segment.aborted_count:
                    index = segment.loaded_aborted(self.files)
                    assert len(index) == segment.aborted_count
                    index.collect(0, self.end + 1, found)
            assert found == Transactions.of(self.batches).aborted

    @invariant()
    def a_committed_reader_sees_what_is_committed_and_nothing_else(self) -> None:
        if hasattr(self, "log"):
            stable = self.log.last_stable_offset(self.end)
            reader = CommittedReader()
            offset = self.start
            while (read := self.log.read_committed(offset, 300, stable)).records:
                offset = reader.take(offset, read.records, read.aborted)
            aborted = Transactions.of(self.batches).aborted_batches
            assert reader.seen == [
                (record.offset, record.value)
                for batch in self.batches
                if batch.next_offset <= stable and batch.aborts is None and batch.base_offset not in aborted
                for record in iter_records(batch.content)
                if record.offset >= self.start
            ]

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), max_bytes=st.integers(0, 400), cached=st.booleans())
    def read_committed(self, data: st.DataObject, max_bytes: int, cached: bool) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.files.cached = cached
        direct = self.log.try_read_committed(offset, max_bytes, self.end)
        self.files.cached = True
        threaded = self.log.read_committed(offset, max_bytes, self.end)
        assert direct in (threaded, WOULD_BLOCK)
        assert self.log.try_read_committed(offset, max_bytes, self.end) == threaded
        for transaction in threaded.aborted:
            assert transaction.last_offset >= offset, "one that ended before would hide what its producer did since"

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), max_bytes=st.integers(0, 400), whole=st.booleans(), cached=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, whole: bool, cached: bool) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        upper = data.draw(st.sampled_from([self.end, *[batch.base_offset for batch in self.batches]]))
        self.files.cached = cached
        direct = self.log.try_read(offset, max_bytes, upper, whole_first_batch=whole)
        self.files.cached = True
        threaded = self.log.read(offset, max_bytes, upper, whole_first_batch=whole)
        assert direct in (threaded, WOULD_BLOCK)
        again = self.log.try_read(offset, max_bytes, upper, whole_first_batch=whole)
        assert again == threaded, "what a thread has read is in memory, and so is the index it took"
        expected = b"".join(b.content for b in self.batches if b.next_offset > offset and b.next_offset <= upper)
        assert expected.startswith(bytes(threaded))
        first = next((b for b in self.batches if b.next_offset > offset and b.next_offset <= upper), None)
        if first is None:
            assert not threaded
        elif len(first.content) <= max_bytes:
            assert len(first.content) <= len(threaded) <= max_bytes
        else:
            assert len(threaded) == (len(first.content) if whole else 0)

    @rule(seed=st.integers(0, 1 << 30))
    def flip_a_bit_behind_what_is_synced(self, seed: int) -> None:
        """A torn or rotten tail: the log ends before it, and never serves it."""
        rng = random.Random(seed)
        last = self.log.segments.all[-1]
        path = os.path.join(self.log.folder, f"{last.base_offset:020d}.log")
        unsynced = [batch for batch in self.batches if batch.base_offset >= max(self.synced, last.base_offset)]
        if not unsynced:
            return
        hit = rng.choice(unsynced)
        at = self.files.content(path).find(hit.content)
        assert at >= 0
        # The offset and the leader epoch are outside the checksum, as in Kafka.
        position = at + rng.randrange(16, len(hit.content))
        self.manager.abandon()
        self.files.content(path)[position] ^= 1 << rng.randrange(8)
        self.manager = self._open()
        self.log = self._reopened()
        self.batches = [batch for batch in self.batches if batch.base_offset < hit.base_offset]
        self.end = hit.base_offset
        self.start = min(self.start, self.log.log_start_offset)
        if self.log.log_end_offset != self.end:
            # The records below were deleted, so the log starts empty where it was to begin.
            assert self.start >= self.end
            self.end = self.log.log_end_offset

    @rule(small=st.sampled_from([0, snapshots.SMALL]))
    def from_now_on_snapshots_are_written_later_or_at_once(self, small: int) -> None:
        self.small.setattr(snapshots, "SMALL", small)

    @rule()
    def write_snapshots(self) -> None:
        self.log.write_snapshots()

    def teardown(self) -> None:
        self.small.undo()
        if hasattr(self, "log"):
            self.manager.close()
            assert not self.files._open, "every descriptor is given back"


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
