"""Compaction against a list: whatever is written, deleted and cleaned, in any order, killed at any step of a cleaning.

The model (`compaction_model.py`) knows every batch that was appended, and says what a log may have lost of it since.
The machine cleans at random times, with maps so small that a cleaning knows a few keys only, ends cleanings at any
change to a file, by a kill or by a power cut, and opens the log again. After every step: the last committed value of
each key is there, what stays is what it was, where it was; a read_committed reader that begins anywhere sees what is
committed and nothing else; producers are known; and no file of a half-done cleaning is left.
"""

import copy
import os
import random
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records import Codec
from tests.property.compacted_log import KEYS, CompactedLog, filled
from tests.property.compaction_model import Killed, batches_of, check_committed_reader
from tests.unit.storage.logs import log_config

IDEMPOTENT = st.integers(7, 8)
TRANSACTIONAL = st.integers(20, 22)
FIRST_OF_VERSION_2 = 22
"""Transactions of these producers end with an epoch of their own."""

A_KEY = st.sampled_from(KEYS)
A_VALUE = st.none() | st.binary(max_size=20)
RECORDS = st.lists(st.tuples(A_KEY, A_VALUE), min_size=1, max_size=4)
A_CODEC = st.sampled_from(list(Codec))
MAP_SIZES = st.sampled_from([1, 2, 3, 1000])


class CompactionAgainstList(RuleBasedStateMachine):
    subject: CompactedLog

    @initialize(
        segment_bytes=st.sampled_from([200, 400, 1_000]),
        interval=st.sampled_from([0, 100, 500]),
        delete_retention_ms=st.sampled_from([0, 300, 100_000]),
        lag_ms=st.sampled_from([0, 0, 500]),
        policy=st.sampled_from(["compact", "compact,delete"]),
    )
    def create(self, segment_bytes: int, interval: int, delete_retention_ms: int, lag_ms: int, policy: str) -> None:
        self.subject = CompactedLog(
            log_config(
                segment_bytes=segment_bytes,
                index_interval_bytes=interval,
                cleanup_policy=policy,
                delete_retention_ms=delete_retention_ms,
                min_compaction_lag_ms=lag_ms,
                min_cleanable_dirty_ratio=0,
                retention_ms=2_000,
            )
        )

    # Producers

    @rule(records=RECORDS, codec=A_CODEC, age_ms=st.integers(0, 1000))
    def append(self, records: list[tuple[bytes, bytes | None]], codec: Codec, age_ms: int) -> None:
        self.subject.append(records, codec=codec, age_ms=age_ms)

    @rule(codec=A_CODEC)
    def append_without_a_key(self, codec: Codec) -> None:
        self.subject.append([(None, b"from before"), (b"anna", b"too")], codec=codec)

    @rule(records=RECORDS, codec=A_CODEC, producer_id=IDEMPOTENT)
    def append_in_sequence(self, records: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int) -> None:
        if not self.subject.of_producer(producer_id) or self.subject.last_sent(producer_id) is not None:
            self.subject.append(records, codec=codec, producer_id=producer_id)

    @rule(records=RECORDS, codec=A_CODEC, producer_id=TRANSACTIONAL)
    def append_in_a_transaction(
        self, records: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int
    ) -> None:
        _, sequence = self.subject.next_of(producer_id)
        if not sequence or self.subject.last_sent(producer_id) is not None:
            self.subject.append(records, codec=codec, producer_id=producer_id, transactional=True)

    @rule(producer_id=TRANSACTIONAL, committed=st.booleans())
    def end_a_transaction(self, producer_id: int, committed: bool) -> None:
        self.subject.end_transaction(producer_id, committed=committed, version_2=producer_id >= FIRST_OF_VERSION_2)

    @rule(producer_id=IDEMPOTENT)
    def repeat_the_last_batch_of_a_producer(self, producer_id: int) -> None:
        last = self.subject.last_sent(producer_id)
        if last is not None:
            appended = self.subject.send_again(last)
            assert appended.duplicate
            assert (appended.base_offset, appended.last_offset) == (last.base_offset, last.next_offset - 1)

    @rule(producer_id=IDEMPOTENT, gap=st.integers(1, 3))
    def leave_out_a_sequence(self, producer_id: int, gap: int) -> None:
        last = self.subject.last_sent(producer_id)
        if last is not None:
            with pytest.raises(Refused) as refused:
                self.subject.send_again(last, skip=last.count + gap)
            assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    # Time and the disk

    @rule(ms=st.integers(1, 1000))
    def time_passes(self, ms: int) -> None:
        self.subject.clock.advance(ms)

    @rule()
    def a_new_leader_epoch(self) -> None:
        self.subject.epoch += 1

    @rule()
    def roll(self) -> None:
        self.subject.log.roll(now_ms=self.subject.now_ms)

    @rule()
    def flush(self) -> None:
        self.subject.flush()

    @rule()
    def checkpoint(self) -> None:
        self.subject.checkpoint()

    @rule()
    def remove_old_files(self) -> None:
        for later_ms in (120_000, 240_000):
            self.subject.manager.maintain(self.subject.now_ms + later_ms)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.subject.delete_records(data.draw(st.integers(self.subject.start, self.subject.end)))

    @rule()
    def apply_retention(self) -> None:
        self.subject.apply_retention()

    @rule()
    def stop_and_start(self) -> None:
        self.subject.stop_and_start()

    @rule()
    def kill_and_start(self) -> None:
        self.subject.kill_and_start()

    @rule(seed=st.integers(0, 1 << 30))
    def cut_the_power(self, seed: int) -> None:
        self.subject.cut_the_power(random.Random(seed))

    # Cleaning

    @rule(keys=MAP_SIZES)
    def clean(self, keys: int) -> None:
        self.subject.log.roll(now_ms=self.subject.now_ms)
        self.subject.clean(keys=keys)
        self.subject.check_no_leftovers()

    @rule(keys=MAP_SIZES, changes=st.integers(0, 60), seed=st.none() | st.integers(0, 1 << 30))
    def die_while_cleaning(self, keys: int, changes: int, seed: int | None) -> None:
        """By a kill, or by a power cut with this seed."""
        self.subject.log.roll(now_ms=self.subject.now_ms)
        try:
            self.subject.clean(keys=keys, changes=changes)
        except Killed:
            if seed is None:
                self.subject.kill_and_start()
            else:
                self.subject.cut_the_power(random.Random(seed))

    @rule(data=st.data())
    def read_from_the_middle(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.subject.start, self.subject.end))
        check_committed_reader(self.subject.log, self.subject.history, offset)

    @rule()
    def look_at_everything(self) -> None:
        self.subject.check_thoroughly()

    @invariant()
    def the_log_is_what_the_model_allows(self) -> None:
        if hasattr(self, "subject"):
            self.subject.check()

    def teardown(self) -> None:
        if hasattr(self, "subject"):
            self.subject.check_thoroughly()
            self.subject.manager.close()
            assert not self.subject.files._open, "every descriptor is given back"


TestCompactionAgainstList = CompactionAgainstList.TestCase
# A failure is reported as found, with its reproduction: shrinking it (Phase.shrink) takes minutes.
TestCompactionAgainstList.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.parametrize("fault", ["kill", "power cut"])
def test_a_cleaning_may_end_before_any_change_to_a_file(fault: str) -> None:
    before = filled()
    whole = copy.deepcopy(before.files)
    history = copy.deepcopy(before.history)
    changes_before = before.files.changes
    assert before.clean()
    changes = before.files.changes - changes_before
    assert changes > 20
    before.check_thoroughly()
    for died_before in range(changes):
        subject = copy.copy(before)
        subject.files, subject.history = copy.deepcopy(whole), copy.deepcopy(history)
        subject.start = 0
        subject.reopen()
        with pytest.raises(Killed):
            subject.clean(changes=died_before)
        if fault == "kill":
            subject.kill_and_start()
        else:
            subject.cut_the_power(random.Random(died_before))
        subject.check()
        check_committed_reader(subject.log, subject.history, subject.end // 2)
        again = subject.last_sent(7)
        assert again is not None
        assert subject.send_again(again).duplicate
        subject.clean()
        subject.check()
        subject.manager.abandon()


def test_the_interpreted_cleaner_writes_the_bytes_of_the_compiled_one() -> None:
    """Of every file of the cleaned log."""
    code = "from tests.property.compacted_log import filled; s = filled(); s.clean(); print(s.digest())"
    digests = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"KASPAR_INTERPRETED": interpreted},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        for interpreted in ("", "1")
    ]
    assert digests[0] == digests[1]
    assert ".log" in digests[0]


@pytest.mark.parametrize("committed", [True, False])
def test_a_power_cut_does_not_undo_what_a_cleaning_went_by(committed: bool) -> None:
    """The marker of a transaction was in the active segment, and nobody had asked for a sync."""
    for seed in range(20):
        subject = CompactedLog(log_config(cleanup_policy="compact", min_cleanable_dirty_ratio=0))
        subject.checkpoint()
        subject.append([(b"anna", b"1")])
        subject.append([(b"anna", b"2")], producer_id=20, transactional=True)
        subject.log.roll(now_ms=subject.now_ms)
        subject.end_transaction(20, committed=committed, version_2=False)
        assert subject.clean()
        subject.cut_the_power(random.Random(seed))
        subject.check()
        assert [batch.aborts for batch in subject.history.batches] == [None, None, not committed]


def test_tombstones_and_markers_go_when_their_time_has_come() -> None:
    """KIP-534: a pass marks them, and one after `delete.retention.ms` takes them."""
    subject = CompactedLog(log_config(cleanup_policy="compact", delete_retention_ms=1_000, min_cleanable_dirty_ratio=0))
    for committed in (True, False):
        subject.append([(b"anna", b"1"), (b"bert", None)], producer_id=20, transactional=True)
        subject.end_transaction(20, committed=committed, version_2=False)
    subject.append([(b"anna", b"2")])
    left: list[list[int]] = []
    for _ in range(4):
        subject.log.roll(now_ms=subject.now_ms)
        subject.clean()
        subject.check_thoroughly()
        left.append([batch.header.base_offset for batch in batches_of(subject.log, 0) if batch.header.count])
        subject.clock.advance(2_000)
        subject.append([(b"of this round %d" % len(left), b"")])
    everything_decided, marked, *_, bare = left
    assert everything_decided == [0, 2, 5, 6]  # the tombstone, both markers, and the last value
    assert {2, 5} <= set(marked)
    assert not {0, 2} & set(bare)
    assert {5, 6} <= set(bare), "the last batch of a producer stays, emptied, and so does what ends its transaction"
