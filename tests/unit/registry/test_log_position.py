"""What fetch responses mean to a reader of the whole log: what it applies, and when its state is void."""

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes
from kaspar.base.ids import ZERO_UUID
from kaspar.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from kaspar.records import Codec, ControlType, EndTransactionMarker, Record, build_batch, build_end_transaction_marker
from kaspar.registry.log.position import FetchRefused, Finding, LogPosition, LogReplaced

FIRST_PRODUCER, SECOND_PRODUCER = 7, 8


def at_start(offset: int = 0) -> LogPosition:
    return LogPosition("_schemas", ZERO_UUID, offset)


def response(
    *batches: bytes | bytearray,
    aborted: tuple[AbortedTransaction, ...] = (),
    error_code: int = 0,
    log_start_offset: int = 0,
    last_stable_offset: int = 0,
    diverging_epoch: EpochEndOffset | None = None,
) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_code=error_code,
        high_watermark=last_stable_offset,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        diverging_epoch=diverging_epoch or EpochEndOffset(),
        aborted_transactions=aborted,
        records=b"".join(batches),
    )


def written(
    base_offset: int, *keys: str, producer_id: int = -1, codec: Codec = Codec.NONE, leader_epoch: int = 0
) -> bytearray:
    records = [Record(0, key.encode(), b"value") for key in keys]
    transactional = producer_id >= 0
    return build_batch(
        records,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
        codec=codec,
        leader_epoch=leader_epoch,
    )


def marker(base_offset: int, kind: ControlType, producer_id: int) -> bytearray:
    return build_end_transaction_marker(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=0, base_offset=base_offset
    )


def read(position: LogPosition, found: PartitionData) -> list[tuple[int, str]]:
    assert position.judge(found) is None
    return [(record.offset, (record.key or b"").decode()) for records in position.batches(found) for record in records]


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_read_in_any_compression(codec: Codec) -> None:
    position = at_start()
    assert read(position, response(written(0, "a", "b", codec=codec))) == [(0, "a"), (1, "b")]
    assert position.offset == 2


def test_aborted_transactions_and_markers_are_skipped_and_passed() -> None:
    position = at_start()
    found = response(
        written(0, "lost", producer_id=FIRST_PRODUCER),
        written(1, "kept", producer_id=SECOND_PRODUCER),
        marker(2, ControlType.ABORT, FIRST_PRODUCER),
        marker(3, ControlType.COMMIT, SECOND_PRODUCER),
        written(4, "next", producer_id=FIRST_PRODUCER),
        marker(5, ControlType.COMMIT, FIRST_PRODUCER),
        aborted=(AbortedTransaction(producer_id=FIRST_PRODUCER, first_offset=0),),
    )
    assert read(position, found) == [(1, "kept"), (4, "next")]
    assert position.offset == 6


def test_key_of_an_aborted_record_is_overlaid_until_it_is_written_again() -> None:
    position = at_start()
    aborted = (AbortedTransaction(producer_id=FIRST_PRODUCER, first_offset=1),)
    lost = response(
        written(0, "a"),
        written(1, "a", "b", producer_id=FIRST_PRODUCER),
        marker(3, ControlType.ABORT, FIRST_PRODUCER),
        aborted=aborted,
    )
    assert read(position, lost) == [(0, "a")]
    assert position.overlaid == {b"a", b"b"}
    assert (position.offset_of(b"a"), position.offset_of(b"b")) == (0, None)
    assert read(position, response(written(4, "a"))) == [(4, "a")]
    assert position.overlaid == {b"b"}
    tombstone = build_batch([Record(0, b"b", None)], base_offset=5)
    assert read(position, response(tombstone)) == [(5, "b")]
    assert position.overlaid == frozenset()


def test_batch_that_begins_before_the_position_is_read_from_there() -> None:
    assert read(at_start(1), response(written(0, "a", "b"))) == [(1, "b")]


def test_partial_batch_at_the_end_is_left_for_the_next_fetch() -> None:
    position = at_start()
    assert read(position, response(written(0, "a"), written(1, "b")[:-1])) == [(0, "a")]
    assert position.offset == 1


def test_response_without_a_whole_batch_is_malformed() -> None:
    position = at_start()
    with pytest.raises(MalformedBytes):
        list(position.batches(response(written(0, "a")[:-1])))


def test_damaged_batch_is_malformed() -> None:
    batch = written(0, "a")
    batch[-1] ^= 1
    with pytest.raises(MalformedBytes):
        list(at_start().batches(response(batch)))


def test_requests_carry_the_epoch_of_the_last_batch() -> None:
    position = at_start()
    (topic,) = position.request(max_wait_ms=1, max_bytes=1).topics
    assert topic.partitions[0].last_fetched_epoch == -1
    read(position, response(written(0, "a", leader_epoch=5)))
    request = position.request(max_wait_ms=1, max_bytes=1)
    assert request.isolation_level == 1
    assert request.topics[0].partitions[0].fetch_offset == 1
    assert request.topics[0].partitions[0].last_fetched_epoch == 5


def test_truncated_log_voids_the_state() -> None:
    with pytest.raises(LogReplaced, match="truncated to the offset 3"):
        at_start(5).judge(response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=3)))


def test_offset_that_the_log_does_not_have_voids_the_state() -> None:
    with pytest.raises(LogReplaced, match="no longer has offset 5"):
        at_start(5).judge(response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))


def test_deletion_of_records_that_count_voids_the_state() -> None:
    position = at_start()
    read(position, response(written(0, "a", "b")))
    with pytest.raises(LogReplaced, match="before the offset 1 were deleted"):
        position.judge(response(written(2, "c"), log_start_offset=1))


def test_deletion_of_records_that_were_replaced_changes_nothing() -> None:
    position = at_start()
    read(position, response(written(0, "a", "b"), written(2, "a", "b")))
    assert read(position, response(written(4, "c"), log_start_offset=2)) == [(4, "c")]


def test_deletion_of_tombstoned_records_changes_nothing() -> None:
    position = at_start()
    tombstone = build_batch([Record(0, b"a", None)], base_offset=1)
    read(position, response(written(0, "a"), tombstone))
    assert read(position, response(written(2, "c"), log_start_offset=2)) == [(2, "c")]


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Finding.LEADER_MOVED),
        (ErrorCode.FENCED_LEADER_EPOCH, Finding.LEADER_MOVED),
        (ErrorCode.KAFKA_STORAGE_ERROR, Finding.LEADER_MOVED),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Finding.TOPIC_UNKNOWN),
        (ErrorCode.UNKNOWN_TOPIC_ID, Finding.TOPIC_UNKNOWN),
    ],
)
def test_errors_that_a_look_up_cures(code: ErrorCode, finding: Finding) -> None:
    assert at_start().judge(response(error_code=code)) is finding


def test_errors_that_need_an_operator_are_raised() -> None:
    with pytest.raises(FetchRefused, match="TOPIC_AUTHORIZATION_FAILED"):
        at_start().judge(response(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def test_gap_that_compaction_left_before_the_end_is_skipped() -> None:
    position = at_start(3)
    empty = response(last_stable_offset=9)
    assert position.judge(empty) is Finding.NOTHING_NEW
    assert position.offset == 3
    assert position.judge(empty) is Finding.NOTHING_NEW
    assert position.offset == 9


def test_empty_response_at_the_end_moves_nothing() -> None:
    position = at_start(9)
    for _ in range(3):
        assert position.judge(response(last_stable_offset=9)) is Finding.NOTHING_NEW
    assert position.offset == 9
