"""Record batches made by hand, right and wrong, and a plain view of the batches in a response.

Nothing here uses the broker's own code: what it writes must be judged by something else.
"""

import gzip
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import crc32c
import lz4.frame
import zstandard

from tests.compat.responses.placeholders import Context, Placeholder, resolve

TIMESTAMP = 1_600_000_000_000
GZIP, LZ4, ZSTD = 1, 3, 4
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
_HEADER = struct.Struct(">qiibIhiqqqhii")
_HEADER_FIELDS = (
    *("base_offset", "size", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count"),
)
_CRC_FROM = 21  # the checksum covers everything after itself
_HEADER_AFTER_SIZE = _HEADER.size - 12


@dataclass(frozen=True)
class Record:
    key: bytes | None = b"key"
    value: bytes | None = b"value"
    timestamp_delta: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset_delta: int | None = None  # None: its place in the batch
    attributes: int = 0

    def encode(self, place: int) -> bytes:
        offset_delta = place if self.offset_delta is None else self.offset_delta
        body = struct.pack(">b", self.attributes) + _varint(self.timestamp_delta) + _varint(offset_delta)
        body += _varbytes(self.key) + _varbytes(self.value) + _varint(len(self.headers))
        for name, value in self.headers:
            body += _varbytes(name.encode()) + _varbytes(value)
        return _varint(len(body)) + body


@dataclass(frozen=True)
class Batch(Placeholder):
    """One record batch. The fields after `records` make it wrong on purpose."""

    records: tuple[Record, ...] = (Record(),)
    codec: int = 0
    attributes: int = 0  # flags beside the codec
    timestamp: int = TIMESTAMP
    producer_id: object = -1
    producer_epoch: object = -1
    base_sequence: int = -1
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    crc_flip: int = 0
    count: int | None = None
    last_offset_delta: int | None = None
    max_timestamp: int | None = None
    size_change: int = 0
    payload: bytes | None = field(default=None, repr=False)  # instead of the encoded records
    cut: int = 0  # bytes left out at the end

    def resolve(self, context: Context) -> bytes:
        payload = b"".join(record.encode(place) for place, record in enumerate(self.records))
        payload = _compress(self.codec, payload) if self.payload is None else self.payload
        deltas = [record.timestamp_delta for record in self.records] or [0]
        producer_id = resolve(self.producer_id, context)
        producer_epoch = resolve(self.producer_epoch, context)
        assert isinstance(producer_id, int)
        assert isinstance(producer_epoch, int)
        fields = (
            self.codec | self.attributes,
            len(self.records) - 1 if self.last_offset_delta is None else self.last_offset_delta,
            self.timestamp,
            self.timestamp + max(deltas) if self.max_timestamp is None else self.max_timestamp,
            producer_id,
            producer_epoch,
            self.base_sequence,
            len(self.records) if self.count is None else self.count,
        )
        covered = struct.pack(">hiqqqhii", *fields) + payload
        crc = crc32c.crc32c(covered) ^ self.crc_flip
        size = _HEADER_AFTER_SIZE + len(payload) + self.size_change
        head = struct.pack(">qiibI", self.base_offset, size, self.leader_epoch, self.magic, crc)
        whole = head + covered
        return whole[: len(whole) - self.cut]


def numbered(count: int, *, start: int = 0, size: int = 0) -> tuple[Record, ...]:
    """`count` records, a second apart, each distinct; `size` pads the values."""
    return tuple(
        Record(b"k%d" % number, (b"v%d" % number).ljust(size, b"."), timestamp_delta=1000 * (number - start))
        for number in range(start, start + count)
    )


def later(batch: Batch, seconds: int) -> Batch:
    return replace(batch, timestamp=batch.timestamp + 1000 * seconds)


def message_set(magic: int, value: bytes = b"value") -> bytes:
    """One message in the format of before 0.11 (magic 0 or 1)."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", TIMESTAMP) if magic == 1 else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def describe(records: bytes | None) -> list[dict[str, Any]] | None:
    """The batches of a response as plain data: every header field, the payload inflated, and what is left over."""
    if records is None:
        return None
    batches: list[dict[str, Any]] = []
    position = 0
    while len(records) - position >= _HEADER.size:
        batch = _describe_one(records, position)
        if position + batch["size"] > len(records):
            break
        batches.append(batch)
        position += batch["size"]
    if position < len(records):
        batches.append({"left over": records[position:].hex()})
    return batches


def _describe_one(records: bytes, start: int) -> dict[str, Any]:
    batch: dict[str, Any] = dict(zip(_HEADER_FIELDS, _HEADER.unpack_from(records, start), strict=True))
    batch["size"] += 12
    end = start + batch["size"]
    # The other fields say what it was computed over, so of the checksum only its truth is of interest.
    batch["crc"] = "right" if crc32c.crc32c(records[start + _CRC_FROM : end]) == batch["crc"] else "wrong"
    payload = records[start + _HEADER.size : end]
    if batch["crc"] == "right" and batch["attributes"] & 7:
        payload = _inflate(batch["attributes"] & 7, payload)
    batch["payload"] = payload.hex()
    return batch


def _compress(codec: int, payload: bytes) -> bytes:
    match codec:
        case 0:
            return payload
        case 1:
            return gzip.compress(payload, mtime=0)
        case 3:
            frame = lz4.frame.LZ4FrameCompressor(block_linked=False)  # Kafka reads no other
            return frame.begin() + frame.compress(payload) + frame.flush()
        case 4:
            return zstandard.compress(payload)
    raise ValueError(f"no scenario sends codec {codec}")


def _inflate(codec: int, payload: bytes) -> bytes:
    match codec:
        case 1:
            return gzip.decompress(payload)
        case 3:
            return lz4.frame.LZ4FrameDecompressor().decompress(payload)
        case 4:
            return zstandard.ZstdDecompressor().decompressobj().decompress(payload)
    return payload


def _varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _varbytes(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value
