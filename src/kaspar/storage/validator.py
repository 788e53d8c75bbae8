"""Checks a batch that a producer sent, and converts it as the topic's settings require, as Kafka's LogValidator does.

Pure and thread-safe: nothing here uses a log. Checks that depend on one (sequences, offsets, rolling) are done by the
append.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.named_tuples import new_tuple
from kaspar.config import LogConfig
from kaspar.config.kinds import MAX_LONG
from kaspar.records import (
    HEADER_SIZE,
    INLINE_CHECK_NS,
    QUICK_RECORDS,
    CheckedBatch,
    Codec,
    NotOneBatch,
    PlainTerms,
    TakesTooLong,
    TimestampType,
    check_batch,
    check_plain_batch,
    checks_inline,
    crc_matches,
    iter_records,
    read_header,
    recompress,
    set_max_timestamp,
)
from kaspar.records.layout import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, LOW_ATTRIBUTES_AT, TRANSACTIONAL_FLAG
from kaspar.storage.append import PreparedBatch

_NO_TIMESTAMP = -1
_SURELY_QUICK_BYTES = 16 << 10
_PLAIN_BYTES = 4 << 20
_GIVE_UP_NS = INLINE_CHECK_NS * 8 // 10  # the clock is only checked between parts of a batch
_REFUSED_INLINE = 500  # records: listing the refused ones means reading each record
_CODECS = {
    "none": Codec.NONE,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class RecordError(NamedTuple):
    """Why one record of a batch was refused; `batch_index` counts from 0."""

    batch_index: int
    message: str


class RecordsRefused(Refused):
    """A batch refused because of some of its records, which the Produce response lists."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: tuple[RecordError, ...], *, keyless_count: int
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
        self.keyless_count = keyless_count
        """How many of these records were refused for having no key in a compacted topic."""


class WrongChecksum(Refused):
    """A batch whose CRC does not match its bytes."""


class WrongOffsetOrSequence(Refused):
    """A batch whose offsets contradict the number of its records, or with an invalid sequence number."""


def prepare_inline(
    buffer: bytearray | memoryview, start: int, end: int, config: LogConfig, now_ms: int
) -> PreparedBatch | None:
    """Like `prepare`, but only if it takes less than about a millisecond, so that the event loop may call it.

    None if it takes longer, with no side effects: call `prepare` in a thread.
    """
    if not _may_run_inline(buffer, start, end, config):
        return None
    out_of_time = None
    if end - start > _SURELY_QUICK_BYTES:
        deadline = time.thread_time_ns() + _GIVE_UP_NS

        def out_of_time() -> bool:
            return time.thread_time_ns() > deadline

    try:
        return prepare(buffer, start, end, config, now_ms, out_of_time)
    except TakesTooLong:
        return None


def _may_run_inline(buffer: bytes | bytearray | memoryview, start: int, end: int, config: LogConfig) -> bool:
    if end - start < HEADER_SIZE:
        return True
    codec = buffer[start + LOW_ATTRIBUTES_AT] & CODEC_MASK
    target = config.compression_type
    if target != "producer" and _CODECS[target] != codec:
        return False
    return is_surely_quick(buffer, start, end) or checks_inline(buffer, start, end)


def is_surely_quick(buffer: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Whether the check of a batch is so quick that many can be checked in one turn."""
    size = end - start
    return size < HEADER_SIZE or (size <= _SURELY_QUICK_BYTES and not buffer[start + LOW_ATTRIBUTES_AT] & CODEC_MASK)


def plain_terms(config: LogConfig) -> PlainTerms | None:
    """The limits within which a topic takes a batch unchanged. None if it never does, because it converts batches or
    syncs after every few messages.
    """
    if (
        config.compression_type not in ("producer", "uncompressed")
        or config.message_timestamp_type != "CreateTime"
        or config.flush_messages < MAX_LONG
    ):
        return None
    return PlainTerms(
        min(config.max_message_bytes, _PLAIN_BYTES),
        QUICK_RECORDS,
        config.message_timestamp_before_max_ms,
        config.message_timestamp_after_max_ms,
        "compact" in config.cleanup_policy,
    )


def prepare_plain(
    buffer: bytearray | memoryview, start: int, end: int, terms: PlainTerms, now_ms: int
) -> PreparedBatch | None:
    """Fast path of `prepare_inline`, at a third of its cost, for the most common batches: not compressed, quickly
    checked, not transactional, and accepted unchanged. None for all others, valid or not, with no side effects: call
    `prepare_inline` for them.
    """
    try:
        return check_plain_batch(buffer, start, end, terms, now_ms)
    except Refused:
        return None


def prepare(
    buffer: bytearray | memoryview,
    start: int,
    end: int,
    config: LogConfig,
    now_ms: int,
    out_of_time: Callable[[], bool] | None = None,
) -> PreparedBatch:
    """Check the one batch in `buffer[start:end]`. Only its timestamps may be changed in place.

    Raises TakesTooLong, with no side effects, if `out_of_time` returns True.
    """
    if end - start > config.max_message_bytes:
        _check_size(buffer, start, end, config)
    try:
        checked = check_batch(buffer, start, end, out_of_time)
    except Refused as refusal:
        specific = _specific(refusal, buffer, start)
        if specific is None:
            raise
        raise specific from refusal
    attributes = checked.attributes
    if (
        checked.base_offset != 0
        or attributes & CONTROL_FLAG
        or (checked.producer_id >= 0 and checked.base_sequence < 0)
    ):
        raise _header_refusal(checked)
    create_time = config.message_timestamp_type == "CreateTime"
    if (
        (checked.has_keyless and "compact" in config.cleanup_policy)
        or (attributes & LOG_APPEND_TIME_FLAG)
        or (create_time and _has_wrong_time(checked, config, now_ms))
    ):
        if out_of_time is not None and checked.count > _REFUSED_INLINE:
            raise TakesTooLong
        _refuse_records(buffer, checked, config, now_ms)

    if config.compression_type != "producer" and _CODECS[config.compression_type] != attributes & CODEC_MASK:
        buffer = _recompressed(buffer, checked, config)
        start, end = 0, len(buffer)
        if end > config.max_message_bytes:
            raise _too_large(end, config)
    else:
        end = checked.end
    if create_time:
        max_timestamp, log_append_time_ms = checked.max_timestamp, _NO_TIMESTAMP
        if max_timestamp != checked.header_max_timestamp or attributes & LOG_APPEND_TIME_FLAG:
            set_max_timestamp(buffer, start, TimestampType.CREATE_TIME, max_timestamp)
    else:
        max_timestamp = log_append_time_ms = now_ms
        set_max_timestamp(buffer, start, TimestampType.LOG_APPEND_TIME, now_ms)
    return new_tuple(
        PreparedBatch,
        (
            buffer,
            start,
            end,
            checked.last_offset_delta,
            max_timestamp,
            checked.producer_id,
            checked.producer_epoch,
            checked.base_sequence,
            attributes & TRANSACTIONAL_FLAG != 0,
            log_append_time_ms,
        ),
    )


def _header_refusal(checked: CheckedBatch) -> Refused:
    """Return the error for a batch with a header that producers may not send."""
    if checked.base_offset != 0:
        return Refused(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch in the append should be 0, but it is {checked.base_offset}",
        )
    if checked.attributes & CONTROL_FLAG:
        return WrongOffsetOrSequence(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records")
    return WrongOffsetOrSequence(
        ErrorCode.INVALID_RECORD,
        f"Invalid sequence number {checked.base_sequence} in record batch with producerId {checked.producer_id}",
    )


def _specific(refusal: Refused, buffer: bytearray | memoryview, start: int) -> Refused | None:
    """The more specific error that Kafka's metrics count this refusal as, if there is one."""
    code, message = refusal.code, refusal.message
    if isinstance(refusal, NotOneBatch) or code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD):
        return None
    try:
        header = read_header(buffer, start)
    except MalformedBytes:
        return NotOneBatch(message, code)
    if code is ErrorCode.CORRUPT_MESSAGE:
        return NotOneBatch(message, code) if crc_matches(buffer, start, header) else WrongChecksum(code, message)
    if header.count <= 0 or header.count - 1 != header.last_offset_delta:
        return WrongOffsetOrSequence(code, message)
    return None


def _check_size(buffer: bytearray | memoryview, start: int, end: int, config: LogConfig) -> None:
    """Refuse a batch that is too large before its records are read or decompressed."""
    size = end - start
    try:
        # Bytes after the batch are dropped, so only the batch's own length counts.
        size = min(size, read_header(buffer, start).size)
    except MalformedBytes:
        return  # check_batch finds the same problem, and knows the error code
    if size > config.max_message_bytes:
        raise _too_large(size, config)


def _too_large(size: int, config: LogConfig) -> Refused:
    return Refused(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append is {size} bytes which exceeds the maximum configured value of "
        f"{config.max_message_bytes}.",
    )


def _has_wrong_time(checked: CheckedBatch, config: LogConfig, now_ms: int) -> bool:
    earliest = now_ms - config.message_timestamp_before_max_ms
    return checked.max_timestamp - now_ms > config.message_timestamp_after_max_ms or checked.min_timestamp < earliest


def _refuse_records(buffer: bytearray | memoryview, checked: CheckedBatch, config: LogConfig, now_ms: int) -> None:
    """Raise RecordsRefused if the topic refuses any record. A timestamp of -1 means none, and is accepted."""
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    create_time = config.message_timestamp_type == "CreateTime"
    compacted = "compact" in config.cleanup_policy
    errors = []
    keyless_count = 0
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(iter_records(buffer, checked.start, checked.end)):
        if compacted and record.key is None:
            keyless_count += 1
            errors.append(RecordError(index, "Compacted topic cannot accept message without key"))
        elif create_time and record.timestamp != _NO_TIMESTAMP:
            if not earliest <= record.timestamp <= latest:
                code = ErrorCode.INVALID_TIMESTAMP
                errors.append(
                    RecordError(
                        index,
                        f"Timestamp {record.timestamp} of message with offset {index} is out of range. The timestamp "
                        f"should be within [{earliest}, {latest}]",
                    )
                )
        elif checked.is_log_append_time:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(
                RecordError(index, "Invalid timestamp type. Producer should not set timestamp type to LogAppendTime.")
            )
    if not errors:
        return
    if code is ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        message = f"One or more records have been rejected due to {len(errors)} record errors in total"
    raise RecordsRefused(code, message, tuple(errors), keyless_count=keyless_count)


def _recompressed(buffer: bytearray | memoryview, checked: CheckedBatch, config: LogConfig) -> bytearray:
    codec = _CODECS[config.compression_type]
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return recompress(buffer, checked, codec, levels.get(codec))
