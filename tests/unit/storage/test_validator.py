"""What a producer's batch must pass, and what a topic's settings make of it."""

import os
import time

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.config import LogConfig
from kaspar.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    TakesTooLong,
    build_batch,
    build_end_transaction_marker,
    crc_matches,
    iter_records,
    place_batch,
    read_header,
)
from kaspar.storage import PreparedBatch, RecordsRefused, prepare, prepare_inline
from tests.unit.storage.logs import NOW_MS, log_config, make_batch

HOUR_MS = 3_600_000


def prepared(batch: bytearray, config: LogConfig | None = None) -> PreparedBatch:
    return prepare(batch, 0, len(batch), config or log_config(), NOW_MS)


def refusal(batch: bytearray, config: LogConfig | None = None) -> Refused:
    with pytest.raises(Refused) as refused:
        prepared(batch, config)
    return refused.value


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_kept_as_it_was_sent(codec: Codec) -> None:
    batch = make_batch([b"a", b"b"], codec=codec)
    sent = bytes(batch)
    assert prepared(batch).buffer is batch
    assert bytes(batch) == sent


def test_a_batch_with_a_base_offset_is_refused() -> None:
    batch = make_batch()
    place_batch(batch, 0, 5, 0)
    assert refusal(batch).code is ErrorCode.INVALID_RECORD


def test_control_records_are_refused() -> None:
    marker = build_end_transaction_marker(
        EndTransactionMarker(ControlType.COMMIT, 0), producer_id=1, producer_epoch=0, timestamp=NOW_MS
    )
    assert refusal(marker).code is ErrorCode.INVALID_RECORD


def test_a_producer_id_needs_a_sequence() -> None:
    assert refusal(make_batch(producer_id=5, producer_epoch=0)).code is ErrorCode.INVALID_RECORD


def test_a_wrong_checksum_is_refused() -> None:
    batch = make_batch()
    batch[-1] ^= 1
    assert refusal(batch).code is ErrorCode.CORRUPT_MESSAGE


def test_two_batches_are_refused() -> None:
    assert refusal(make_batch() + make_batch()).code is ErrorCode.INVALID_RECORD


def test_a_batch_larger_than_max_message_bytes_is_refused_before_it_is_looked_at() -> None:
    batch = make_batch([b"x" * 100])
    config = log_config(max_message_bytes=len(batch) - 1)
    assert refusal(batch, config).code is ErrorCode.MESSAGE_TOO_LARGE
    batch[-1] ^= 1
    assert refusal(batch, config).code is ErrorCode.MESSAGE_TOO_LARGE
    prepared(make_batch([b"x" * 100]), log_config(max_message_bytes=len(batch)))


def test_records_without_a_key_are_refused_on_a_compacted_topic_by_their_place() -> None:
    records = [Record(NOW_MS, b"k", b"v"), Record(NOW_MS, None, b"v"), Record(NOW_MS, b"", None)]
    error = refusal(build_batch(records), log_config(cleanup_policy="compact"))
    assert isinstance(error, RecordsRefused)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in error.record_errors] == [1]
    prepared(build_batch(records))


@pytest.mark.parametrize(("ago", "taken"), [(HOUR_MS, True), (HOUR_MS + 1, False), (-5000, True), (-5001, False)])
def test_timestamps_out_of_range_are_refused_by_their_place(ago: int, taken: bool) -> None:
    config = log_config(message_timestamp_before_max_ms=HOUR_MS, message_timestamp_after_max_ms=5000)
    batch = build_batch([Record(NOW_MS, b"k", b"v"), Record(NOW_MS - ago, b"k", b"v")])
    if taken:
        prepared(batch, config)
        return
    error = refusal(batch, config)
    assert isinstance(error, RecordsRefused)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in error.record_errors] == [1]


def test_a_record_without_a_timestamp_is_in_no_range() -> None:
    config = log_config(message_timestamp_before_max_ms=HOUR_MS)
    assert prepared(make_batch(timestamp=-1), config).max_timestamp == -1


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_is_the_brokers(codec: Codec) -> None:
    batch = make_batch([b"a", b"b"], timestamp=123, codec=codec)
    ready = prepared(batch, log_config(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1))
    assert (ready.max_timestamp, ready.log_append_time_ms) == (NOW_MS, NOW_MS)
    header = read_header(batch, 0)
    assert header.is_log_append_time
    assert crc_matches(batch, 0, header)
    assert [record.timestamp for record in iter_records(batch)] == [NOW_MS, NOW_MS]


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_makes_every_batch_the_same(source: Codec, target: str) -> None:
    batch = make_batch([b"a" * 100] * 5, codec=source, producer_id=3, producer_epoch=1, base_sequence=9)
    ready = prepared(batch, log_config(compression_type=target))
    header = read_header(ready.buffer, ready.start)
    assert header.codec.name.lower() == ("none" if target == "uncompressed" else target)
    assert crc_matches(ready.buffer, ready.start, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 9)
    assert [record.value for record in iter_records(ready.buffer, ready.start, ready.end)] == [b"a" * 100] * 5


def test_a_batch_that_grows_too_large_by_recompression_is_refused() -> None:
    batch = make_batch([b"a" * 10_000], codec=Codec.GZIP)
    config = log_config(compression_type="uncompressed", max_message_bytes=1000)
    assert len(batch) < 1000
    assert refusal(batch, config).code is ErrorCode.MESSAGE_TOO_LARGE


def test_what_takes_long_is_not_for_the_event_loop() -> None:
    config = log_config()
    small = make_batch()
    assert prepare_inline(small, 0, len(small), config, NOW_MS) == prepared(small)
    assert prepare_inline(small, 0, len(small), log_config(compression_type="gzip"), NOW_MS) is None
    large = make_batch([os.urandom(50_000)], codec=Codec.GZIP)
    assert prepare_inline(large, 0, len(large), config, NOW_MS) is None
    with pytest.raises(Refused):
        prepare_inline(bytearray(b"short"), 0, 5, config, NOW_MS)


def test_bomb_that_looks_like_an_ordinary_batch_is_given_up_soon() -> None:
    """A batch of lz4, which is tried on the event loop, that holds 200 MB of zeros."""
    bomb = make_batch([bytes(200_000_000)], codec=Codec.LZ4)
    untouched = bytes(bomb)
    started = time.thread_time_ns()
    assert prepare_inline(bomb, 0, len(bomb), log_config(), NOW_MS) is None
    inline_ns = time.thread_time_ns() - started
    assert bomb == untouched
    started = time.thread_time_ns()
    assert prepared(bomb).last_offset_delta == 0
    assert inline_ns < (time.thread_time_ns() - started) / 2


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_refusal_among_very_many_records_is_not_found_on_the_event_loop(codec: Codec) -> None:
    batch = make_batch([os.urandom(50) for _ in range(1000)], codec=codec)
    config = log_config(message_timestamp_before_max_ms="0", message_timestamp_after_max_ms="0")
    late = NOW_MS + 1
    with pytest.raises(TakesTooLong):
        prepare(batch, 0, len(batch), config, late, lambda: False)
    assert prepare_inline(batch, 0, len(batch), config, late) is None
    with pytest.raises(RecordsRefused):
        prepare(batch, 0, len(batch), config, late)
