"""Batches for tests, among them such as no honest producer would send."""

from collections.abc import Iterable

from kaspar.base.varints import append_varlong
from kaspar.records import Codec, Record, build_batch, set_crc
from kaspar.records.deflate import deflate
from kaspar.records.layout import HEADER

NOW_MS = 1_700_000_000_000
FIELDS = [
    *("base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta", "base_timestamp"),
    *("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count"),
]


def some_records(count: int = 10, value_size: int = 50) -> list[Record]:
    return [
        Record(NOW_MS + index, b"key-%d" % index, b"v" * value_size, (("origin", b"test"), ("empty", None)))
        for index in range(count)
    ]


def varint(number: int) -> bytes:
    target = bytearray()
    append_varlong(target, number)
    return bytes(target)


def octets(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(body: bytes, length: int | None = None) -> bytes:
    """A record with any body, and any length before it."""
    return varint(len(body) if length is None else length) + body


def plain_record(
    offset_delta: int, *, timestamp_delta: int = 0, key: bytes | None = None, value: bytes | None = b"v"
) -> bytes:
    return record(b"\0" + varint(timestamp_delta) + varint(offset_delta) + octets(key) + octets(value) + varint(0))


def with_stale_crc(batch: bytes | bytearray, **fields: int) -> bytearray:
    """The batch with other numbers in its header."""
    changed = bytearray(batch)
    values = dict(zip(FIELDS, HEADER.unpack_from(changed), strict=True)) | fields
    HEADER.pack_into(changed, 0, *(values[field] for field in FIELDS))
    return changed


def with_fields(batch: bytes | bytearray, **fields: int) -> bytearray:
    """The batch with other numbers in its header, and a CRC that fits them."""
    changed = with_stale_crc(batch, **fields)
    set_crc(changed, 0)
    return changed


def batch_of(payload: bytes, *, count: int = 1, attributes: int = 0, base_timestamp: int = NOW_MS) -> bytearray:
    """A batch with any bytes where its records belong."""
    batch = build_batch([Record(base_timestamp, None, None)])[:61] + payload
    return with_fields(batch, length=len(batch) - 12, attributes=attributes, count=count, last_offset_delta=count - 1)


def compressed(codec: Codec, chunks: Iterable[bytes]) -> bytes:
    return b"".join(deflate(codec, chunks))
