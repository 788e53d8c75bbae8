"""Builds record batches: from records, or from another batch with another codec."""

from collections.abc import Iterable, Sequence

from kaspar.base.ids import NO_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from kaspar.base.varints import append_varlong
from kaspar.records.batch import CheckedBatch, set_crc
from kaspar.records.codec import Codec, Octets, TimestampType
from kaspar.records.core import building
from kaspar.records.deflate import deflate
from kaspar.records.inflate import inflate
from kaspar.records.layout import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    TRANSACTIONAL_FLAG,
)
from kaspar.records.record import Record

build_plain_batch = building.build_plain_batch

_MAX_OFFSET_DELTA = 0x7FFF_FFFF


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_EPOCH,
) -> bytearray:
    """Build one batch from `records`, which must not be empty.

    Records without an offset get consecutive ones from `base_offset` on. Given offsets must increase, and may leave
    gaps as in a compacted log.
    """
    records = list(records)
    if not records:
        raise ValueError("a batch holds at least one record")
    base_timestamp = records[0].timestamp
    body, last_delta = _body(records, base_offset, base_timestamp)
    attributes = int(codec)
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    if transactional:
        attributes |= TRANSACTIONAL_FLAG
    if control:
        attributes |= CONTROL_FLAG
    batch = bytearray(HEADER_SIZE)
    for piece in deflate(codec, [body], level):
        batch += piece
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_delta,
        base_timestamp,
        max(NO_TIMESTAMP, *(record.timestamp for record in records)),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    set_crc(batch, 0)
    return batch


def _body(records: Sequence[Record], base_offset: int, base_timestamp: int) -> tuple[bytearray, int]:
    """The records as bytes, and the difference between the last record's offset and `base_offset`."""
    body = bytearray()
    delta = -1
    for record in records:
        previous = delta
        delta = record.offset - base_offset if record.offset >= 0 else previous + 1
        if not previous < delta <= _MAX_OFFSET_DELTA:
            raise ValueError(f"offset {record.offset} cannot follow {base_offset + previous} in this batch")
        _append_record(body, record, record.timestamp - base_timestamp, delta)
    return body, delta


def build_fence(*, producer_id: int, producer_epoch: int) -> bytearray:
    """Build a transactional batch without records, at one offset, that raises a producer's epoch in partitions where
    its transaction is open. It has the format of a batch whose records were all removed by compaction, so every reader
    accepts it. It has no timestamp: a search by time must not find it, since it contains no record.
    """
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        batch,
        0,
        0,
        HEADER_SIZE - LENGTH_OVERHEAD,
        NO_EPOCH,
        MAGIC,
        0,
        TRANSACTIONAL_FLAG,
        0,
        NO_TIMESTAMP,
        NO_TIMESTAMP,
        producer_id,
        producer_epoch,
        -1,
        0,
    )
    set_crc(batch, 0)
    return batch


def recompress(buffer: Octets, checked: CheckedBatch, codec: Codec, level: int | None = None) -> bytearray:
    """Copy the batch with its records compressed by `codec`. Takes no more memory than both compressed batches."""
    payload = memoryview(buffer)[checked.start + HEADER_SIZE : checked.end]
    batch = bytearray(memoryview(buffer)[checked.start : checked.start + HEADER_SIZE])
    for piece in deflate(codec, inflate(checked.codec, payload), level):
        batch += piece
    HEADER.pack_into(
        batch,
        0,
        checked.base_offset,
        len(batch) - LENGTH_OVERHEAD,
        checked.leader_epoch,
        MAGIC,
        0,
        checked.attributes & ~CODEC_MASK | codec,
        checked.last_offset_delta,
        checked.base_timestamp,
        checked.header_max_timestamp,
        checked.producer_id,
        checked.producer_epoch,
        checked.base_sequence,
        checked.count,
    )
    set_crc(batch, 0)
    return batch


def _append_record(body: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    one = bytearray(1)  # the attributes
    append_varlong(one, timestamp_delta)
    append_varlong(one, offset_delta)
    _append_octets(one, record.key)
    _append_octets(one, record.value)
    append_varlong(one, len(record.headers))
    for name, value in record.headers:
        _append_octets(one, name.encode("utf-8", "surrogateescape"))
        _append_octets(one, value)
    append_varlong(body, len(one))
    body += one


def _append_octets(target: bytearray, octets: bytes | None) -> None:
    if octets is None:
        target.append(1)  # -1
    else:
        append_varlong(target, len(octets))
        target += octets
