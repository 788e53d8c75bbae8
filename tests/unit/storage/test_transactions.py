"""Transactions in a log: markers, the last stable offset, aborted transactions, what a coordinator has confirmed."""

import errno
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records import iter_headers
from kaspar.storage import WOULD_BLOCK, AbortedTransaction, Log, prepare
from kaspar.storage.producers.state import LAST_EPOCH
from kaspar.storage.reading.committed_reads import MOST_AT_ONCE
from kaspar.storage.truncation import truncate_fully_and_start_at, truncate_to
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import (
    NOW_MS,
    LogFolder,
    append,
    append_transactional,
    append_values,
    end_transaction,
    expire_producers,
    log_config,
    make_batch,
    verify,
)

P, Q = 7, 8
V2 = 2
T = "t-id"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return LogFolder(tmp_path).log


def aborted(log: Log, offset: int = 0) -> list[AbortedTransaction]:
    """All that a reader gets that reads from `offset` to the end, in the order of the markers."""
    listed: set[AbortedTransaction] = set()
    while offset < log.log_end_offset:
        records, found = log.read_committed(offset, 1 << 20, log.log_end_offset)
        assert all(transaction.last_offset >= offset for transaction in found)
        listed.update(found)
        offset = list(iter_headers(records, 0, len(records)))[-1][1].next_offset
    return sorted(listed, key=lambda transaction: transaction.last_offset)


def refusal_of_marker(
    log: Log, *, epoch: int = 0, coordinator_epoch: int = 0, transaction_version: int = 0
) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(Refused) as refused:
        end_transaction(
            log,
            P,
            committed=False,
            epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
    assert log.log_end_offset == end
    return refused.value.code


# Markers


def test_a_marker_is_a_control_batch_of_its_producer(log: Log) -> None:
    append_transactional(log, P, 0, 2, epoch=3)
    appended = end_transaction(log, P, committed=True, epoch=3, coordinator_epoch=5)
    assert (appended.base_offset, appended.last_offset) == (2, 2)
    data = log.read(2, 1000, 3)
    ((_, header),) = iter_headers(data, 0, len(data))
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (P, 3, -1)
    assert header.leader_epoch == 0
    (entry,) = log.active_producers()
    assert (entry.coordinator_epoch, entry.current_txn_first_offset) == (5, -1)


def test_the_last_stable_offset_passes_a_transaction_when_its_marker_is_committed(log: Log) -> None:
    append_values(log, b"before")
    append_transactional(log, P, 0)
    append_values(log, b"beside")
    end_transaction(log, P, committed=True)
    assert log.last_stable_offset(3) == 1
    log.producers.high_watermark_moved(3)
    assert log.last_stable_offset(3) == 1, "the marker is at 3"
    log.producers.high_watermark_moved(4)
    assert log.last_stable_offset(4) == 4


def test_the_oldest_of_several_transactions_holds_the_last_stable_offset(log: Log) -> None:
    append_transactional(log, P, 0)
    append_transactional(log, Q, 0)
    end_transaction(log, P, committed=True)
    log.producers.high_watermark_moved(3)
    assert log.last_stable_offset(3) == 1
    append_transactional(log, P, 1)
    end_transaction(log, Q, committed=True)
    log.producers.high_watermark_moved(5)
    assert log.last_stable_offset(5) == 3


def test_the_last_stable_offset_is_never_below_the_start_of_the_log(log: Log) -> None:
    append_transactional(log, P, 0, 4)
    log.advance_log_start_offset(2)
    assert log.last_stable_offset(4) == 2


def test_a_marker_of_an_older_coordinator_is_fenced(log: Log) -> None:
    append_transactional(log, P, 0)
    end_transaction(log, P, committed=True, coordinator_epoch=4)
    append_transactional(log, P, 1)
    assert refusal_of_marker(log, coordinator_epoch=3) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert end_transaction(log, P, committed=True, coordinator_epoch=4).base_offset == 3


def test_a_marker_of_an_older_epoch_is_refused(log: Log) -> None:
    append_transactional(log, P, 0, epoch=5)
    assert refusal_of_marker(log, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end_transaction(log, P, committed=True, epoch=5).base_offset == 1


def test_since_version_2_a_marker_has_an_epoch_that_its_transaction_had_not(log: Log) -> None:
    append_transactional(log, P, 0, epoch=5)
    assert refusal_of_marker(log, epoch=5, transaction_version=V2) is ErrorCode.INVALID_PRODUCER_EPOCH
    end_transaction(log, P, committed=True, epoch=6, transaction_version=V2)
    (entry,) = log.active_producers()
    assert (entry.producer_epoch, entry.current_txn_first_offset) == (6, -1)


def test_after_the_last_epoch_a_marker_has_no_other(log: Log) -> None:
    append_transactional(log, P, 0, epoch=LAST_EPOCH)
    end_transaction(log, P, committed=True, epoch=LAST_EPOCH, transaction_version=V2)
    assert not log.producers.in_transaction(P, LAST_EPOCH)


def test_since_version_2_a_marker_that_comes_again_decides_nothing(log: Log) -> None:
    append_transactional(log, P, 0, epoch=5)
    end_transaction(log, P, committed=False, epoch=6, transaction_version=V2)
    end_transaction(log, P, committed=False, epoch=6, transaction_version=V2)
    assert aborted(log) == [AbortedTransaction(P, 0, 1, 2)]
    append_transactional(log, P, 0, epoch=6)
    assert refusal_of_marker(log, epoch=6, transaction_version=V2) is ErrorCode.INVALID_PRODUCER_EPOCH, (
        "a late one does not end the next transaction"
    )


def test_a_marker_of_a_producer_that_wrote_nothing_is_written_and_decides_nothing(log: Log) -> None:
    end_transaction(log, P, committed=False, epoch=1, transaction_version=V2)
    append_values(log, b"after")
    assert aborted(log) == []
    assert log.last_stable_offset(2) == 2


# Aborted transactions


def test_an_aborted_transaction_is_reported_with_its_records(log: Log) -> None:
    append_transactional(log, P, 0, 2)
    append_transactional(log, Q, 0)
    end_transaction(log, P, committed=False)
    end_transaction(log, Q, committed=True)
    append_values(log, b"after")
    assert aborted(log) == [AbortedTransaction(P, 0, 3, 2)], "as long as the other was open it was the first unstable"
    assert aborted(log, 3) == [AbortedTransaction(P, 0, 3, 2)]
    assert aborted(log, 4) == []


def test_a_reader_is_listed_of_the_transactions_in_what_it_is_given_and_not_of_all(log: Log) -> None:
    for number in range(20):
        append_transactional(log, P, number, value=bytes(500))
        end_transaction(log, P, committed=False)
    first = log.read_committed(0, 600, log.log_end_offset)
    assert first.aborted == [AbortedTransaction(P, 0, 1, 2)]
    assert len(aborted(log)) == 20


def test_many_aborted_transactions_are_listed_in_a_thread(log: Log) -> None:
    for number in range(MOST_AT_ONCE + 1):
        append_transactional(log, P, number)
        end_transaction(log, P, committed=False)
    end = log.log_end_offset
    assert log.try_read_committed(0, 1 << 20, end) is WOULD_BLOCK
    assert len(log.read_committed(0, 1 << 20, end).aborted) == MOST_AT_ONCE + 1
    few = log.try_read_committed(0, 1000, end)
    assert few is WOULD_BLOCK or 0 < len(few.aborted) < 10


def test_a_marker_in_a_later_segment_is_found(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(segment_bytes=400)).log
    append_transactional(log, P, 0)
    for number in range(12):
        append_values(log, bytes([number]) * 100)
    end_transaction(log, P, committed=False)
    append_values(log, bytes(300))
    append_values(log, b"in the active segment")
    assert len(log.segments.all) > 3
    assert log.read_committed(0, 10, log.log_end_offset).aborted == [AbortedTransaction(P, 0, 13, 14)]
    holder = log.segments.all[log.segments.slot_of(13)]
    assert [segment.aborted_count for segment in log.segments.all if segment is not holder] == [0] * (
        len(log.segments.all) - 1
    )
    assert Path(holder.path(".txnindex")).stat().st_size == 34


def test_the_index_of_a_sealed_segment_is_loaded_by_a_caller_that_may_wait(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=400))
    log = folder.log
    append_transactional(log, P, 0)
    end_transaction(log, P, committed=False)
    log.roll(now_ms=NOW_MS)
    append_values(log, b"after")
    log = folder.reopen(clean=True)
    log.read(0, 1000, 2)  # the bytes themselves are in memory
    assert log.try_read_committed(0, 1000, 2) is WOULD_BLOCK
    expected = log.read_committed(0, 1000, 2)
    assert expected.aborted == [AbortedTransaction(P, 0, 1, 2)]
    assert log.try_read_committed(0, 1000, 2) in (expected, WOULD_BLOCK)


def test_what_was_loaded_while_a_segment_was_written_to_does_not_fall_behind(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    append_transactional(folder.log, P, 0)
    end_transaction(folder.log, P, committed=False)
    log = folder.reopen(clean=True)
    assert len(aborted(log)) == 1, "from the file, for nothing was appended yet"
    append_transactional(log, P, 1)
    end_transaction(log, P, committed=False)
    log.roll(now_ms=NOW_MS)
    assert aborted(log) == [AbortedTransaction(P, 0, 1, 2), AbortedTransaction(P, 2, 3, 4)]


def test_a_read_at_the_end_needs_no_disk(log: Log) -> None:
    append_transactional(log, P, 0)
    end_transaction(log, P, committed=False)
    read = log.try_read_committed(0, 1000, 2)
    assert read is WOULD_BLOCK or len(read.aborted) == 1


@pytest.mark.parametrize("clean", [True, False])
def test_aborted_and_open_transactions_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=300))
    log = folder.log
    for number in range(6):
        append_transactional(log, P, number)
        end_transaction(log, P, committed=number % 2 == 0)
    append_transactional(log, Q, 0)
    before = aborted(log)
    assert [entry.first_offset for entry in before] == [2, 6, 10]
    log = folder.reopen(clean=clean)
    log.producers.high_watermark_moved(log.log_end_offset)
    assert aborted(log) == before
    assert log.last_stable_offset(13) == 12
    end_transaction(log, Q, committed=False)
    assert aborted(log, 12) == [AbortedTransaction(Q, 12, 13, 14)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", [b"", bytes(34), b"\xff" * 34, b"torn"])
def test_a_damaged_index_is_rebuilt_from_the_log(tmp_path: Path, clean: bool, damage: bytes) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=300))
    log = folder.log
    append_transactional(log, Q, 0)
    for number in range(6):
        append_transactional(log, P, number)
        end_transaction(log, P, committed=number % 2 == 0)
    end_transaction(log, Q, committed=False)
    before = aborted(log)
    assert len(before) == 4
    log.flush()
    (folder.manager.close if clean else folder.manager.checkpoint)()
    folder.manager.abandon()
    for name in folder.names(".txnindex"):
        path = Path(log.folder) / name
        path.write_bytes(path.read_bytes() + damage if damage == b"torn" else damage + path.read_bytes()[34:] + b"x")
    log = folder.open_again()
    assert aborted(log) == before


def test_a_truncation_takes_back_what_its_markers_decided(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=400))
    log = folder.log
    for number in range(6):
        append_transactional(log, P, number)
        end_transaction(log, P, committed=False)
    truncate_to(log, 3, now_ms=NOW_MS)
    log.producers.high_watermark_moved(3)
    assert aborted(log) == [AbortedTransaction(P, 0, 1, 2)]
    assert log.last_stable_offset(3) == 2, "the transaction whose marker is gone is open again"
    end_transaction(log, P, committed=True)
    assert aborted(log) == [AbortedTransaction(P, 0, 1, 2)]
    truncate_fully_and_start_at(log, 9, now_ms=NOW_MS)
    assert folder.names(".txnindex") == []


def test_an_index_goes_with_its_segment(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=300))
    log = folder.log
    for number in range(6):
        append_transactional(log, P, number)
        end_transaction(log, P, committed=False)
    log.advance_log_start_offset(log.log_end_offset - 1)
    assert all(int(name[:20]) in log.segments.base_offsets for name in folder.names(".txnindex"))
    assert all(entry.last_offset >= log.log_start_offset for entry in aborted(log, log.log_start_offset))


def test_a_follower_keeps_the_same_index(tmp_path: Path) -> None:
    leader = LogFolder(tmp_path / "leader", log_config(segment_bytes=500)).log
    follower = LogFolder(tmp_path / "follower", log_config(segment_bytes=500)).log
    append_transactional(leader, Q, 0)
    for number in range(8):
        append_transactional(leader, P, number)
        end_transaction(leader, P, committed=number % 3 == 0)
    end_transaction(leader, Q, committed=False)
    offset = 0
    while offset < leader.log_end_offset:
        data = leader.read(offset, 700, leader.log_end_offset)
        appended = follower.append_as_follower(data, leader_epoch=0, now_ms=NOW_MS)
        assert appended is not None
        offset = appended.last_offset + 1
    assert aborted(follower) == aborted(leader)
    assert len(aborted(leader)) == 6


# Full and failing disks


def test_a_marker_that_finds_no_space_leaves_nothing_behind(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    log = folder.log
    append_transactional(log, P, 0)
    for room in (0, 10, 34, 40):
        files.bytes_left = room
        with pytest.raises(Refused) as refused:
            end_transaction(log, P, committed=False)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        files.recover()
        assert log.log_end_offset == 1
        assert log.segments.all[-1].aborted_count == 0
    end_transaction(log, P, committed=False)
    assert aborted(folder.reopen(clean=False)) == [AbortedTransaction(P, 0, 1, 2)]


def test_the_recovery_point_does_not_pass_an_entry_that_is_not_written(tmp_path: Path) -> None:
    files = FaultyFiles()
    leader = LogFolder(tmp_path / "leader").log
    append_transactional(leader, P, 0)
    end_transaction(leader, P, committed=False)
    folder = LogFolder(tmp_path / "follower", files=files)
    log = folder.log
    data = leader.read(0, 1000, 2)
    files.bytes_left = len(data) + 5
    log.append_as_follower(data, leader_epoch=0, now_ms=NOW_MS)
    assert aborted(log) == [AbortedTransaction(P, 0, 1, 2)], "readers get it, also while the disk is full"
    with pytest.raises(Refused):
        log.flush()
    assert log.recovery_point == 0
    files.recover()
    assert log.flush() == 2
    assert aborted(folder.reopen(clean=False)) == [AbortedTransaction(P, 0, 1, 2)]


def test_an_entry_that_cannot_be_synced_takes_the_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = LogFolder(tmp_path, files=files).log
    append_transactional(log, P, 0)
    end_transaction(log, P, committed=False)
    files.fail("fsync", errno.EIO)
    with pytest.raises(Exception, match="offline"):
        log.flush()
    assert not log.directory.online


# Verification


def transactional(sequence: int = 0, *, epoch: int = 0, producer_id: int = P) -> bytearray:
    return make_batch([b"v"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)


def refusal(log: Log, batch: bytearray) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(Refused) as refused:
        append(log, batch)
    assert log.log_end_offset == end
    return refused.value.code


def test_a_transaction_begins_only_if_its_coordinator_knows_of_it(log: Log) -> None:
    assert refusal(log, transactional()) is ErrorCode.INVALID_TXN_STATE
    verification = log.producers.begin_verification(P, 0, 0, transactional_id=T, bumps_epoch=True, now_ms=NOW_MS)
    assert verification is not None
    assert refusal(log, transactional()) is ErrorCode.INVALID_TXN_STATE, "it was not confirmed yet"
    log.producers.confirm(P, verification)
    append(log, transactional(0))
    assert log.producers.begin_verification(P, 0, 1, transactional_id=T, bumps_epoch=True, now_ms=NOW_MS) is None, (
        "it has begun"
    )
    append(log, transactional(1))


def test_a_marker_takes_back_what_was_confirmed(log: Log) -> None:
    verify(log, P, epoch=4)
    end_transaction(log, P, committed=False, epoch=5, transaction_version=V2)
    assert refusal(log, transactional(epoch=4)) is ErrorCode.INVALID_TXN_STATE


def test_a_response_that_comes_after_the_marker_means_nothing(log: Log) -> None:
    verification = log.producers.begin_verification(P, 0, 0, transactional_id=T, bumps_epoch=False, now_ms=NOW_MS)
    assert verification is not None
    end_transaction(log, P, committed=False)
    again = log.producers.begin_verification(P, 0, 0, transactional_id=T, bumps_epoch=False, now_ms=NOW_MS)
    log.producers.confirm(P, verification)
    assert refusal(log, transactional()) is ErrorCode.INVALID_TXN_STATE
    assert again is not None
    log.producers.confirm(P, again)
    append(log, transactional())


def test_the_marker_of_one_transaction_does_not_take_back_the_next_one_of_version_2(log: Log) -> None:
    append_transactional(log, P, 0, epoch=4)
    verify(log, P, epoch=5)
    end_transaction(log, P, committed=True, epoch=5, transaction_version=V2)
    append(log, transactional(0, epoch=5))


def test_an_epoch_that_is_over_is_refused_before_anybody_is_asked(log: Log) -> None:
    append_transactional(log, P, 0, epoch=4)
    with pytest.raises(Refused) as refused:
        verify(log, P, epoch=3)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_later_epoch_is_not_confirmed_with_an_earlier_one(log: Log) -> None:
    verify(log, P, epoch=4)
    log.producers.begin_verification(P, 5, 0, transactional_id=T, bumps_epoch=True, now_ms=NOW_MS)
    assert refusal(log, transactional(epoch=5)) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("open_here", [False, True])
@pytest.mark.parametrize(("transactional_id", "epoch"), [("thief", 0), ("thief", 32767), (T, 32767)])
def test_a_batch_with_another_producers_id_leaves_nothing_behind(
    log: Log, transactional_id: str, epoch: int, open_here: bool
) -> None:
    """Neither while the coordinator is asked nor after it has said no."""
    if open_here:
        append_transactional(log, P, 0)
    sequence = int(open_here)
    claimed = log.producers.begin_verification(
        P, epoch, 0, transactional_id=transactional_id, bumps_epoch=False, now_ms=NOW_MS
    )
    verify(log, P, base_sequence=sequence, version_2=False)
    append(log, transactional(sequence))
    end_transaction(log, P, committed=True)
    if claimed is not None:
        log.producers.withdraw_verification(P, claimed)
    refused = log.producers.begin_verification(
        P, epoch, 0, transactional_id=transactional_id, bumps_epoch=False, now_ms=NOW_MS
    )
    assert refused is not None
    log.producers.withdraw_verification(P, refused)
    verify(log, P, base_sequence=sequence + 1, version_2=False)
    append(log, transactional(sequence + 1))


def test_a_refusal_does_not_take_back_what_another_request_of_the_producer_still_asks(log: Log) -> None:
    first, second = (
        log.producers.begin_verification(P, 0, 0, transactional_id=T, bumps_epoch=False, now_ms=NOW_MS)
        for _ in range(2)
    )
    assert first is not None
    assert second is not None
    log.producers.withdraw_verification(P, first)
    log.producers.confirm(P, second)
    append(log, transactional(0))


def test_the_first_batch_of_a_transaction_is_the_earliest_that_was_asked_about(log: Log) -> None:
    verify(log, P, base_sequence=2, version_2=False)
    verify(log, P, base_sequence=0, version_2=False)
    assert refusal(log, transactional(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, transactional(0))
    append(log, transactional(1))


def test_since_version_2_a_producer_of_which_nothing_is_known_begins_with_zero(log: Log) -> None:
    verify(log, P, base_sequence=3)
    assert refusal(log, transactional(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verify(log, Q, base_sequence=3, version_2=False)
    append(log, transactional(3, producer_id=Q))


def test_a_batch_that_comes_again_in_its_transaction_is_a_duplicate(log: Log) -> None:
    append_transactional(log, P, 0)
    assert append(log, transactional(0)).duplicate
    end_transaction(log, P, committed=True)
    assert append(log, transactional(0)).duplicate, "the marker brought no new epoch"


def test_a_coordinator_writes_without_sequences_in_a_producers_name(log: Log) -> None:
    batch = transactional()
    for _ in range(2):
        verify(log, P, base_sequence=-1)
        prepared = prepare(batch, 0, len(batch), log.config, NOW_MS)._replace(base_sequence=-1)
        log.append_as_leader(prepared, leader_epoch=0, now_ms=NOW_MS)
        batch = transactional()
    assert log.log_end_offset == 2


def test_what_was_asked_about_and_never_written_is_forgotten_like_an_idle_producer(log: Log) -> None:
    verify(log, P)
    expire_producers(log, 999)
    append(log, transactional())
    verify(log, Q)
    expire_producers(log, 1000)
    assert refusal(log, transactional(producer_id=Q)) is ErrorCode.INVALID_TXN_STATE
    assert log.producers.in_transaction(P, 0), "an open transaction is never forgotten"


def test_a_transaction_is_late_when_its_producer_has_been_silent(log: Log) -> None:
    assert not log.producers.has_late_transaction(NOW_MS + 10**9, 1000)
    append_transactional(log, P, 0)
    assert not log.producers.has_late_transaction(NOW_MS + 1000, 1000)
    assert log.producers.has_late_transaction(NOW_MS + 1001, 1000)
