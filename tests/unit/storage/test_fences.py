"""A fence in a log: it raises a producer's epoch within its transaction, so that nobody with the older one writes."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records import iter_headers
from kaspar.storage import Appended, Log
from tests.unit.storage.logs import (
    NOW_MS,
    LogFolder,
    append_transactional,
    append_values,
    end_transaction,
    read_values,
    verify,
)

P = 7
V2 = 2


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path)


def fence(log: Log, epoch: int, *, coordinator_epoch: int = 0) -> Appended | None:
    return log.append_fence(
        producer_id=P, producer_epoch=epoch, coordinator_epoch=coordinator_epoch, leader_epoch=0, now_ms=NOW_MS
    )


def refusal_of_batch(log: Log, epoch: int) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(Refused) as refused:
        append_transactional(log, P, 1, epoch=epoch)
    assert log.log_end_offset == end
    return refused.value.code


def test_it_is_an_empty_batch_of_the_transaction_that_readers_pass(folder: LogFolder) -> None:
    log = folder.log
    append_transactional(log, P, 0, epoch=4, value=b"one")
    appended = fence(log, 5)
    assert appended is not None
    assert (appended.base_offset, appended.last_offset) == (1, 1)
    append_values(log, b"two")
    data = log.read(1, 1000, 2)
    ((_, header),) = iter_headers(data, 0, len(data))
    assert header.is_transactional
    assert not header.is_control
    assert (header.producer_id, header.producer_epoch, header.count) == (P, 5, 0)
    assert read_values(log) == [(0, b"one"), (2, b"two")]
    latest = log.offset_of_max_timestamp()
    assert latest is not None
    assert latest.offset != 1, "there is no record that a search by time could find"


@pytest.mark.parametrize("clean", [None, True, False])
def test_who_has_the_older_epoch_writes_nothing_more_also_after_a_restart(
    folder: LogFolder, clean: bool | None
) -> None:
    append_transactional(folder.log, P, 0, epoch=4)
    fence(folder.log, 5)
    log = folder.log if clean is None else folder.reopen(clean=clean)
    assert refusal_of_batch(log, 4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.producers.in_transaction(P, 5), "it goes on until its marker comes"
    assert log.last_stable_offset(log.log_end_offset) == 0


def test_a_partition_without_a_record_of_the_transaction_is_fenced_too(folder: LogFolder) -> None:
    log = folder.log
    asked = log.producers.begin_verification(P, 4, 0, transactional_id="t-id", bumps_epoch=True, now_ms=0)
    assert asked is not None
    fence(log, 5)
    log.producers.confirm(P, asked)
    with pytest.raises(Refused):
        append_transactional(log, P, 0, epoch=4)
    end_transaction(log, P, committed=True, epoch=6, transaction_version=V2)
    assert log.producers.first_unstable_offset == 0, "until the marker is committed"
    log.producers.high_watermark_moved(log.log_end_offset)
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_it_is_written_once(folder: LogFolder) -> None:
    log = folder.log
    append_transactional(log, P, 0, epoch=4)
    assert fence(log, 5) is not None
    assert fence(log, 5) is None
    assert log.log_end_offset == 2


def test_behind_the_marker_it_does_nothing(folder: LogFolder) -> None:
    log = folder.log
    append_transactional(log, P, 0, epoch=4)
    fence(log, 5)
    end_transaction(log, P, committed=True, epoch=7, transaction_version=V2)
    assert fence(log, 5) is None
    assert verify(log, P, epoch=7) is not None
    append_transactional(log, P, 0, epoch=7)
    assert fence(log, 5) is None


def test_the_marker_needs_an_epoch_above_it(folder: LogFolder) -> None:
    log = folder.log
    append_transactional(log, P, 0, epoch=4)
    fence(log, 5)
    with pytest.raises(Refused) as refused:
        end_transaction(log, P, committed=True, epoch=5, transaction_version=V2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    end_transaction(log, P, committed=True, epoch=6, transaction_version=V2)
    assert not log.producers.in_transaction(P, 6)


def test_one_of_an_older_coordinator_is_refused(folder: LogFolder) -> None:
    log = folder.log
    append_transactional(log, P, 0, epoch=4)
    end_transaction(log, P, committed=True, epoch=5, coordinator_epoch=3, transaction_version=V2)
    with pytest.raises(Refused) as refused:
        fence(log, 9, coordinator_epoch=2)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
