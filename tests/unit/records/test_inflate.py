"""What Kafka's own readers inflate is taken, what they do not is refused, and a bomb costs little memory."""

import struct
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records import Codec, check_batch
from kaspar.records import inflate as inflate_module
from kaspar.records.inflate import CHUNK_BYTES, count_zstd_blocks, inflate
from tests.unit.records.batches import batch_of, compressed, plain_record

DATA = b"".join(b"record %d " % number for number in range(20_000))
IN_64_KIB = [DATA[start : start + 65536] for start in range(0, len(DATA), 65536)]
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=31)
    return stream.compress(data) + stream.flush()


def block(data: bytes) -> bytes:
    raw = bytes(cramjam.snappy.compress_raw(data))
    return struct.pack(">i", len(raw)) + raw


def zstd(data: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)


def lz4_frame(data: bytes, *, sized: bool = False, **options: Any) -> bytes:
    stream = lz4.frame.LZ4FrameCompressor(**options)
    return stream.begin(len(data) if sized else 0) + stream.compress(data) + stream.flush()


LZ4_USUAL = b"\x04\x22\x4d\x18\x60\x40\x82"
"""The header that Kafka's and librdkafka's producers write."""


def lz4_of(*blocks: bytes, stored: bool = False) -> bytes:
    frame = LZ4_USUAL
    for data in blocks:
        block = data if stored else bytes(cramjam.lz4.compress_block(data, store_size=False))
        frame += struct.pack("<I", len(block) | stored << 31) + block
    return frame + bytes(4)


def with_empty_block(frame: bytes, header_size: int, after: int = 0, *, summed: bool = False) -> bytes:
    """A stored block of no bytes, which the library takes; for Kafka's reader it is the end of the frame."""
    place = header_size + after
    checksum = struct.pack("<I", 0x02CC5D05) if summed else b""
    return frame[:place] + struct.pack("<I", 1 << 31) + checksum + frame[place:]


def inflated(codec: Codec, payload: bytes) -> bytes:
    return b"".join(inflate(codec, payload))


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        (Codec.NONE, DATA),
        (Codec.GZIP, gzip(DATA)),
        (Codec.GZIP, gzip(DATA[:1000]) + gzip(b"") + gzip(DATA[1000:])),
        (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA))),
        (Codec.SNAPPY, XERIAL + block(DATA[:1000]) + block(DATA[1000:])),
        (Codec.SNAPPY, XERIAL + block(DATA[:1000]) + XERIAL + block(DATA[1000:])),
        (Codec.LZ4, lz4_frame(DATA, block_linked=False)),
        (Codec.LZ4, lz4_frame(DATA, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX1MB)),
        (Codec.LZ4, lz4_of(*IN_64_KIB)),
        (Codec.LZ4, lz4_of(*IN_64_KIB, stored=True)),
        (Codec.LZ4, lz4_frame(DATA, block_linked=False, block_checksum=True, content_checksum=True)),
        (Codec.ZSTD, zstd(DATA)),
        (Codec.ZSTD, zstd(DATA, write_checksum=True)),
        (Codec.ZSTD, zstd(DATA, write_content_size=False)),
        (Codec.ZSTD, zstd(DATA[:1000]) + b"\x50\x2a\x4d\x18\x03\0\0\0xyz" + zstd(DATA[1000:])),
    ],
)
def test_every_form_that_kafka_reads_is_inflated(codec: Codec, payload: bytes) -> None:
    assert inflated(codec, payload) == DATA


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        (Codec.GZIP, b""),
        (Codec.GZIP, DATA),
        (Codec.GZIP, gzip(DATA)[:-1]),
        (Codec.GZIP, gzip(DATA)[:-8] + b"\0\0\0\0" + gzip(DATA)[-4:]),
        (Codec.GZIP, gzip(DATA) + b"more"),
        (Codec.SNAPPY, b""),
        (Codec.SNAPPY, DATA),
        (Codec.SNAPPY, XERIAL + block(DATA)[:-1]),
        (Codec.SNAPPY, XERIAL + block(DATA) + b"mor"),
        (Codec.SNAPPY, XERIAL + b"\xff\xff\xff\xff"),
        (Codec.SNAPPY, XERIAL + b"\x7f\xff\xff\xff"),
        (Codec.LZ4, b""),
        (Codec.LZ4, DATA),
        (Codec.LZ4, lz4_frame(DATA, block_linked=True)),
        (Codec.LZ4, lz4_frame(DATA, block_linked=False)[:-1]),
        (Codec.LZ4, LZ4_USUAL[:6]),
        (Codec.LZ4, LZ4_USUAL[:6] + b"\x83" + lz4_of(b"more")[7:]),
        (Codec.LZ4, LZ4_USUAL),
        (Codec.LZ4, lz4_of(DATA[:65537])),
        (Codec.LZ4, lz4_of(DATA[:65537], stored=True)),
        (Codec.LZ4, lz4_of(b"more") + b"more"),
        (Codec.LZ4, lz4_of(b"some", b"", b"more", stored=True)),
        (Codec.LZ4, with_empty_block(lz4_frame(DATA, block_linked=False, content_checksum=True), header_size=7)),
        (Codec.LZ4, with_empty_block(lz4_frame(DATA, block_linked=False, sized=True), header_size=15)),
        (
            Codec.LZ4,
            with_empty_block(lz4_frame(b"x", block_linked=False, block_checksum=True), 7, after=9, summed=True),
        ),
        (Codec.LZ4, LZ4_USUAL + b"\x01\0\0\0\xf0" + bytes(4)),
        (Codec.LZ4, lz4_frame(DATA, block_linked=False) + b"more"),
        (Codec.ZSTD, DATA),
        (Codec.ZSTD, zstd(DATA)[:-1]),
        (Codec.ZSTD, zstd(DATA, write_checksum=True)[:-1]),
        (Codec.ZSTD, zstd(DATA, write_checksum=True)[:-4] + b"\0\0\0\0"),
        (Codec.ZSTD, zstd(DATA) + b"more than eight bytes"),
        (Codec.ZSTD, zstd(DATA) + b"more"),
        (Codec.ZSTD, zstd(DATA) + b"\x50\x2a\x4d\x18\xff\xff\xff\xff"),
    ],
)
def test_what_kafka_could_not_read_to_its_end_is_refused(codec: Codec, payload: bytes) -> None:
    with pytest.raises(Refused, match=f"the {codec.name.lower()} data of the batch is invalid") as caught:
        inflated(codec, payload)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_inflated_bytes_come_in_bounded_chunks(codec: Codec) -> None:
    payload = compressed(codec, [bytes(1_000_000)] * 8)
    sizes = [len(chunk) for chunk in inflate(codec, payload)]
    assert sum(sizes) == 8_000_000
    assert max(sizes) <= CHUNK_BYTES


def test_snappy_block_cannot_claim_more_than_it_can_hold() -> None:
    claim_of_2_gib = b"\xff\xff\xff\xff\x07" + b"\0" * 100
    with pytest.raises(Refused, match="a block of 105 bytes that claims to inflate to 2147483647"):
        inflated(Codec.SNAPPY, claim_of_2_gib)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_batch_that_inflates_beyond_the_limit_is_too_large(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflate_module, "INFLATED_BYTES_LIMIT", 1_000_000)
    assert len(inflated(codec, compressed(codec, [bytes(1_000_000)]))) == 1_000_000
    with pytest.raises(Refused) as caught:
        inflated(codec, compressed(codec, [bytes(1_000_001)]))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_bomb_of_many_records_is_given_up_when_their_number_is_reached(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = 0
    whole = inflate_module._INFLATERS[codec]

    def counting(payload: memoryview) -> Iterator[bytes | bytearray | memoryview]:
        nonlocal chunks
        for chunk in whole(payload):
            chunks += 1
            yield chunk

    monkeypatch.setitem(inflate_module._INFLATERS, codec, counting)
    records = plain_record(0) + plain_record(1)
    batch = batch_of(compressed(codec, [records, *[bytes(1_000_000)] * 50]), count=2, attributes=codec)
    with pytest.raises(Refused, match="bytes follow the last of 2 records"):
        check_batch(batch, 0, len(batch))
    assert chunks <= 2


def test_zstd_blocks_are_counted_up_to_enough() -> None:
    payload = memoryview(compressed(Codec.ZSTD, [bytes(1_000_000)]))
    assert count_zstd_blocks(payload, 100) >= 1_000_000 // (128 * 1024)
    assert count_zstd_blocks(payload, 3) == 3
    assert count_zstd_blocks(payload[:-1], 100) <= count_zstd_blocks(payload, 100)
    assert count_zstd_blocks(memoryview(b"no zstd at all"), 100) == 0


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_checking_a_bomb_takes_little_memory(codec: Codec) -> None:
    """One legal record of 200 MB, all zeros: walked over without ever being held."""
    program = f"""
        import resource
        from kaspar.records import Codec, check_batch
        from tests.unit.records.batches import batch_of, compressed, varint
        codec = Codec({int(codec)})
        head = bytes(3) + varint(-1) + varint(200_000_000)
        length = varint(len(head) + 200_000_000 + 1)
        chunks = [length + head] + [bytes(1_000_000)] * 200 + [varint(0)]
        batch = batch_of(compressed(codec, chunks), attributes=codec)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert check_batch(batch, 0, len(batch)).count == 1
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    response = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert response.returncode == 0, response.stderr
    assert int(response.stdout) < 20_000, "KiB more than before"
