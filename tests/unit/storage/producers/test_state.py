"""Idempotent producers: sequences, duplicates, epochs, expiry, transactions and snapshots."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.patient_clock import Moment
from kaspar.records import ControlType, EndTransactionMarker, build_end_transaction_marker
from kaspar.storage import Log
from kaspar.storage.append import Appended
from kaspar.storage.producers.entry import LAST_SEQUENCE
from kaspar.storage.producers.snapshot_file import DamagedSnapshot, decode, encode
from kaspar.storage.producers.state import ProducerState
from kaspar.storage.truncation import truncate_to
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    LogFolder,
    append,
    expire_producers,
    log_config,
    make_batch,
    verify,
)

PRODUCER = 7
DAY_MS = 86_400_000


def send(
    log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = PRODUCER, transactional: bool = False
) -> Appended:
    batch = make_batch(
        [b"v"] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    if transactional:
        verify(log, producer_id, epoch=epoch, base_sequence=sequence, version_2=False)
    return append(log, batch)


def refusal(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, transactional: bool = False) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(Refused) as refused:
        send(log, sequence, count, epoch=epoch, transactional=transactional)
    assert log.log_end_offset == end
    return refused.value.code


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return LogFolder(tmp_path).log


def test_each_of_the_last_five_batches_is_recognised_when_it_comes_again(log: Log) -> None:
    for number in range(6):
        send(log, 2 * number, 2)
    for number in range(1, 6):
        again = send(log, 2 * number, 2)
        assert again == Appended(2 * number, 2 * number + 1, NOW_MS, 0, duplicate=True)
    assert refusal(log, 0, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the sixth last is forgotten"
    assert log.log_end_offset == 12


def test_a_batch_that_repeats_only_a_part_is_out_of_order(log: Log) -> None:
    send(log, 0, 3)
    assert refusal(log, 0, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, 1, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_out_of_order(log: Log) -> None:
    send(log, 0)
    assert refusal(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1).base_offset == 1


def test_sequences_begin_again_after_the_last_one(log: Log) -> None:
    send(log, LAST_SEQUENCE - 1)
    send(log, LAST_SEQUENCE)
    assert send(log, 0).base_offset == 2
    assert send(log, LAST_SEQUENCE).duplicate


def test_a_batch_may_span_the_end_of_the_sequences(log: Log) -> None:
    send(log, LAST_SEQUENCE - 1, 4)
    assert send(log, LAST_SEQUENCE - 1, 4).duplicate
    assert send(log, 2).base_offset == 4


def test_an_unknown_producer_may_begin_anywhere(log: Log) -> None:
    assert send(log, 42).base_offset == 0
    assert send(log, 43).base_offset == 1


def test_a_new_epoch_begins_with_sequence_zero_and_fences_the_old_one(log: Log) -> None:
    send(log, 0)
    assert refusal(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1).base_offset == 1
    assert refusal(log, 1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 1, epoch=1).base_offset == 2


def test_an_idle_producer_is_forgotten_and_may_begin_anywhere(log: Log) -> None:
    send(log, 0)
    assert expire_producers(log, 999) == 0
    assert refusal(log, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert expire_producers(log, 1000) == 1
    assert send(log, 5).base_offset == 1


def test_no_producer_is_forgotten_because_the_wall_clock_jumps(log: Log) -> None:
    """Not even one that is believed: how long a producer is idle is measured on the steady clock."""
    send(log, 0)
    assert expire_producers(log, 999, believed_ms=NOW_MS + 10**12) == 0
    assert send(log, 0).duplicate


def test_a_producer_of_old_records_is_not_idle(log: Log) -> None:
    append(log, make_batch(producer_id=PRODUCER, producer_epoch=0, base_sequence=0, timestamp=NOW_MS - 10**10))
    assert expire_producers(log, 999) == 0
    assert expire_producers(log, 1000) == 1


@pytest.mark.parametrize(("away_ms", "kept"), [(999, True), (1000, False)])
def test_after_a_restart_idleness_counts_from_the_last_batch(tmp_path: Path, away_ms: int, kept: bool) -> None:
    folder = LogFolder(tmp_path)
    send(folder.log, 0)
    log = folder.reopen(clean=True)
    gone = sum(log.expire_producers(Moment(NOW_MS, 5, NOW_MS + away_ms), 1000))
    assert gone == (0 if kept else 1)


def test_a_clock_that_is_wrong_at_a_start_forgets_no_producer(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    send(folder.log, 0)
    folder.clock.jump(365 * DAY_MS)
    assert send(folder.reopen(clean=True), 0).duplicate


def test_a_producer_from_the_future_is_forgotten_all_the_same(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    send(folder.log, 0)
    log = folder.reopen(clean=True)
    assert expire_producers(log, 999, believed_ms=NOW_MS - DAY_MS) == 0
    assert expire_producers(log, 1000, believed_ms=NOW_MS - DAY_MS) == 1


def test_producers_are_looked_at_in_slices(log: Log) -> None:
    for producer_id in range(10):
        send(log, 0, producer_id=producer_id)
    expire_producers(log, 0)
    later = Moment(NOW_MS, 1000, NOW_MS)
    looking = log.expire_producers(later, 1000, at_most=4)
    assert next(looking) == 4
    send(log, 1, producer_id=9)  # what comes in between counts
    assert list(looking) == [4, 1]
    assert send(log, 1, producer_id=9).duplicate


@pytest.mark.parametrize("clean", [True, False])
def test_producers_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=200))
    for sequence in range(10):
        send(folder.log, sequence)
    send(folder.log, 0, producer_id=8)
    log = folder.reopen(clean=clean)
    assert send(log, 9).duplicate
    assert refusal(log, 11) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 10).base_offset == 11
    assert send(log, 1, producer_id=8).base_offset == 12


def test_a_damaged_snapshot_is_passed_over_after_a_crash(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=200))
    for sequence in range(6):
        send(folder.log, sequence)
    assert folder.names(".snapshot")
    for name in folder.names(".snapshot"):
        path = Path(folder.log.folder) / name
        path.write_bytes(path.read_bytes()[:-3])
    assert send(folder.reopen(clean=False), 5).duplicate


def test_snapshots_are_kept_for_segments_and_the_end_only(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=200))
    for sequence in range(4):
        send(folder.log, sequence)
    bases = [f"{base:020d}.snapshot" for base in folder.log.segments.base_offsets[1:]]
    assert folder.names(".snapshot") == bases
    folder.reopen(clean=True)
    assert folder.names(".snapshot") == [*bases, f"{4:020d}.snapshot"]
    send(folder.log, 4)
    folder.reopen(clean=True)
    bases = [f"{base:020d}.snapshot" for base in folder.log.segments.base_offsets[1:]]
    assert folder.names(".snapshot") == sorted({*bases, f"{5:020d}.snapshot"})


def test_truncation_removes_snapshots_of_what_is_no_more(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=200))
    for sequence in range(6):
        send(folder.log, sequence)
    truncate_to(folder.log, 3, now_ms=NOW_MS)
    assert all(int(name[:20]) <= 3 for name in folder.names(".snapshot"))
    assert send(folder.log, 2).duplicate
    assert refusal(folder.log, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(folder.log, 3).base_offset == 3


def test_recovery_removes_snapshots_of_what_was_lost(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=200))
    for sequence in range(6):
        send(folder.log, sequence)
    damaged = Path(folder.log.segments.all[0].path(".log"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    log = folder.reopen(clean=False)
    assert all(int(name[:20]) <= log.log_end_offset for name in folder.names(".snapshot"))
    assert refusal(log, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    end = log.log_end_offset
    assert send(log, end).base_offset == end


def test_no_snapshot_outlives_a_crash_that_took_what_it_knows(tmp_path: Path) -> None:
    """A compacted log goes on behind a gap, and so would a snapshot from there be used once the log is synced."""
    folder = LogFolder(tmp_path, log_config(cleanup_policy="compact"))
    for producer_id in (7, 8, 9):
        send(folder.log, 0, producer_id=producer_id)
        folder.log.roll(now_ms=NOW_MS)
    lost = Path(folder.log.segments.all[1].path(".log"))
    lost.write_bytes(b"")
    folder.reopen(clean=False)
    folder.log.flush()
    log = folder.reopen(clean=False)
    assert send(log, 0, producer_id=7).duplicate
    assert send(log, 0, producer_id=9).duplicate
    assert send(log, 0, producer_id=8).base_offset == 3, "the batch of this producer is gone, and may come again"


def test_an_open_transaction_holds_the_last_stable_offset_back(log: Log) -> None:
    send(log, 0)
    send(log, 0, producer_id=8, transactional=True)
    send(log, 1)
    send(log, 0, producer_id=9, transactional=True)
    assert log.last_stable_offset(4) == 1
    assert log.last_stable_offset(0) == 0
    assert expire_producers(log, 10**9) == 1, "one with an open transaction stays"


def test_only_transactional_batches_come_within_a_transaction(log: Log) -> None:
    send(log, 0, transactional=True)
    assert refusal(log, 1) is ErrorCode.INVALID_TXN_STATE
    assert send(log, 1, transactional=True).base_offset == 1


@pytest.mark.parametrize("clean", [None, True, False])
def test_a_marker_decides_a_transaction_once_it_is_replicated(tmp_path: Path, clean: bool | None) -> None:
    folder = LogFolder(tmp_path)
    log = folder.log
    send(log, 0, 2, transactional=True)
    if clean is not None:
        log = folder.reopen(clean=clean)
    assert log.last_stable_offset(2) == 0
    marker = build_end_transaction_marker(
        EndTransactionMarker(ControlType.COMMIT, 5),
        producer_id=PRODUCER,
        producer_epoch=1,
        timestamp=NOW_MS,
        base_offset=2,
        leader_epoch=0,
    )
    log.append_as_follower(marker, leader_epoch=0, now_ms=NOW_MS)
    assert log.last_stable_offset(2) == 0, "the marker is at 2, which the high watermark has not passed"
    log.producers.high_watermark_moved(3)
    assert log.last_stable_offset(3) == 3
    (entry,) = log.active_producers()
    assert (entry.producer_epoch, entry.coordinator_epoch, entry.current_txn_first_offset) == (1, 5, -1)
    assert refusal(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1).base_offset == 3


def test_a_snapshot_has_kafkas_bytes() -> None:
    state = ProducerState(PARTITION)
    state.remember(7, 3, 10, 4, 104, 1_000, transactional=True)
    content = encode(state.entries.values())
    assert content[:2] == b"\x00\x01"
    assert content[6:] == bytes.fromhex(
        "00000001"  # one entry
        "0000000000000007"  # producer id
        "0003"  # epoch
        "0000000e"  # last sequence
        "0000000000000068"  # last offset
        "00000004"  # offset delta
        "00000000000003e8"  # timestamp
        "ffffffff"  # coordinator epoch
        "0000000000000064"  # first offset of the transaction
    )
    (entry,) = decode(content)
    assert (entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.last_offset) == (7, 3, 14, 104)
    assert entry.current_txn_first_offset == 100


def test_a_damaged_snapshot_is_recognised() -> None:
    state = ProducerState(PARTITION)
    state.remember(7, 3, 10, 4, 104, 1_000, transactional=False)
    content = encode(state.entries.values())
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        with pytest.raises(DamagedSnapshot):
            decode(bytes(damaged))
    for length in range(len(content)):
        with pytest.raises(DamagedSnapshot):
            decode(content[:length])
