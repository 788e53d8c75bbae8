"""Inflates the records of a compressed batch in bounded chunks, so that a compression bomb costs little memory.

Compressed data is not trusted. So every library gets a small piece at a time and may return at most CHUNK_BYTES, the
inflated bytes are limited to INFLATED_BYTES_LIMIT, and every error of a library becomes a Refused. Two cases take more
memory than a chunk: a zstd frame may request a window of 128 MiB, as the highest level does, and a snappy block can
only be inflated whole. No block grows by more than SNAPPY_MAX_RATIO; one that claims to is refused before any memory is
allocated.

Only batches that Kafka's own readers can inflate completely may get into the log, so missing or extra bytes at the end
of the compressed data are refused too. The libraries release the GIL while they inflate.
"""

import functools
import itertools
import struct
import zlib
from collections.abc import Iterator

import cramjam
import lz4.frame
import zstandard

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records.codec import Codec, Octets

CHUNK_BYTES = 128 * 1024
INFLATED_BYTES_LIMIT = 1024 * 1024 * 1024
SNAPPY_MAX_RATIO = 22
XERIAL_MAGIC = b"\x82SNAPPY\x00"

_PIECE_BYTES = 64 * 1024
_ZSTD_WINDOW_LIMIT = 1 << 27  # what zstd's own tools accept; level 22 needs it
_XERIAL_HEADER_SIZE = 16
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_USUAL_FRAME = _LZ4_MAGIC + b"\x60\x40"
_LZ4_USUAL_HEADER_SIZE = 7
_LZ4_USUAL_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31
_LZ4_HAS_SIZE = 0x08
_LZ4_HAS_BLOCK_CHECKSUMS = 0x10
_LZ4_BLOCKS_AT_ONCE = 1024
_EMPTY_STORED_BLOCK = "it has an empty stored block, which Kafka's reader takes for the end"
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_RLE_BLOCK = 1
_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50


class _BrokenError(Exception):
    """The compressed data violates a rule that its library does not check."""


def inflate(codec: Codec, payload: Octets) -> Iterator[Octets]:
    """Inflate `payload`, chunk by chunk. Raises Refused for bytes that do not inflate.

    The code is UNKNOWN_SERVER_ERROR, which Kafka's broker sends for them.
    """
    inflated = 0
    try:
        for chunk in _INFLATERS[codec](memoryview(payload)):
            inflated += len(chunk)
            if inflated > INFLATED_BYTES_LIMIT:
                raise Refused(
                    ErrorCode.MESSAGE_TOO_LARGE, f"the batch inflates to more than {INFLATED_BYTES_LIMIT} bytes"
                )
            yield chunk
    except (zlib.error, RuntimeError, zstandard.ZstdError, cramjam.DecompressionError, _BrokenError) as error:
        message = f"the {codec.name.lower()} data of the batch is invalid: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error


def _inflate_none(payload: memoryview) -> Iterator[Octets]:
    yield payload


def _inflate_gzip(payload: memoryview) -> Iterator[Octets]:
    position = 0
    while position < len(payload) or position == 0:  # one round per gzip member: Kafka's readers read several in a row
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if position == len(payload):
                raise _BrokenError("it is truncated")
            piece: Octets = payload[position : position + _PIECE_BYTES]
            position += len(piece)
            while piece and not member.eof:
                yield member.decompress(piece, CHUNK_BYTES)
                piece = member.unconsumed_tail
        position -= len(member.unused_data)


def _inflate_lz4(payload: memoryview) -> Iterator[Octets]:
    # Kafka's reader reads one frame, and only with independent blocks and no dictionary. Data that it could not read
    # must not get into the log.
    if payload[:4] != _LZ4_MAGIC or len(payload) < 5 or payload[4] & 0b11100011 != 0b01100000:
        raise _BrokenError("it is not an lz4 frame of version 1 with independent blocks")
    if is_usual_lz4(payload):
        yield from _inflate_lz4_blocks(payload)
        return
    yield from _check_lz4_blocks(payload)
    frame = lz4.frame.LZ4FrameDecompressor()
    position = 0
    while not frame.eof:
        if not frame.needs_input:
            yield frame.decompress(b"", CHUNK_BYTES)
            continue
        if position == len(payload):
            raise _BrokenError("it is truncated")
        piece = payload[position : position + _PIECE_BYTES]
        position += len(piece)
        yield frame.decompress(piece, CHUNK_BYTES)
    if position < len(payload) or frame.unused_data:
        raise _BrokenError("bytes follow the frame")


def _check_lz4_blocks(payload: memoryview) -> Iterator[Octets]:
    """Check the rules that Kafka's reader enforces and the library does not. Yields only empty pieces, between which a
    caller that is out of time may stop: a frame may have many blocks.
    """
    flags = payload[4]
    position = _LZ4_USUAL_HEADER_SIZE + (8 if flags & _LZ4_HAS_SIZE else 0)
    checksum_size = 4 if flags & _LZ4_HAS_BLOCK_CHECKSUMS else 0
    for count in itertools.count(1):
        if position + 4 > len(payload):
            return  # the library reports it
        (size,) = struct.unpack_from("<I", payload, position)
        if size == _LZ4_STORED:
            raise _BrokenError(_EMPTY_STORED_BLOCK)
        if size == 0:
            return
        position += 4 + (size & ~_LZ4_STORED) + checksum_size
        if count % _LZ4_BLOCKS_AT_ONCE == 0:
            yield b""


def is_usual_lz4(payload: memoryview) -> bool:
    """Whether this is a frame as Kafka's and librdkafka's producers write it: 64 KiB blocks, no size, no checksums."""
    return payload[: len(_LZ4_USUAL_FRAME)] == _LZ4_USUAL_FRAME


def _inflate_lz4_blocks(payload: memoryview) -> Iterator[Octets]:
    """Inflate the blocks of a usual frame one by one: a sixth faster than the library's reader of frames."""
    _check_lz4_header(bytes(payload[:_LZ4_USUAL_HEADER_SIZE]))
    position = _LZ4_USUAL_HEADER_SIZE
    left = len(payload) - position
    while left >= 4:
        (size,) = struct.unpack_from("<I", payload, position)
        position += 4
        left -= 4
        if size == 0:
            if left:
                raise _BrokenError("bytes follow the frame")
            return
        is_stored = size & _LZ4_STORED
        size &= ~_LZ4_STORED
        if size == 0:
            raise _BrokenError(_EMPTY_STORED_BLOCK)
        if size > left or size > _LZ4_USUAL_BLOCK_BYTES:
            raise _BrokenError(f"it has a block of {size} bytes, but {left} bytes are left and 64 KiB allowed")
        block = payload[position : position + size]
        yield block if is_stored else _inflate_lz4_block(block)
        position += size
        left -= size
    raise _BrokenError("it is truncated")


def _inflate_lz4_block(block: memoryview) -> Octets:
    inflated = bytearray(_LZ4_USUAL_BLOCK_BYTES)
    size = cramjam.lz4.decompress_block_into(block, inflated, output_len=_LZ4_USUAL_BLOCK_BYTES)
    return memoryview(inflated)[:size]


@functools.lru_cache(maxsize=8)
def _check_lz4_header(header: bytes) -> None:
    """Check the header's last byte, a checksum. All valid headers are equal, so it is computed only once."""
    lz4.frame.get_frame_info(header)


def _inflate_zstd(payload: memoryview) -> Iterator[Octets]:
    frames = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_LIMIT)
    with frames.stream_reader(payload, read_size=_PIECE_BYTES, read_across_frames=True) as reader:
        while chunk := reader.read(CHUNK_BYTES):
            yield chunk
    # The library accepts a frame that is cut off after its last block; a Kafka consumer does not.
    for _ in _zstd_blocks(payload):
        pass


def _zstd_blocks(payload: memoryview) -> Iterator[int]:
    """The compressed size of each block of each frame. Checks the structure around the blocks."""
    position = 0
    while position < len(payload):
        if len(payload) - position < 8:
            raise _BrokenError("it is truncated")
        magic, size = struct.unpack_from("<II", payload, position)
        if magic & ~0xF == _ZSTD_SKIPPABLE_MAGIC:
            position += 8 + size
            continue
        if magic != _ZSTD_MAGIC:
            raise _BrokenError("bytes that are no frame follow")
        frame = payload[position:]
        position += zstandard.frame_header_size(frame)
        last = 0
        while not last:
            if position + 3 > len(payload):
                raise _BrokenError("it is truncated")
            block = int.from_bytes(payload[position : position + 3], "little")
            last = block & 1
            size = 1 if block >> 1 & 3 == _ZSTD_RLE_BLOCK else block >> 3
            position += 3 + size
            yield size
        if zstandard.get_frame_parameters(frame).has_checksum:
            position += 4
    if position > len(payload):
        raise _BrokenError("it is truncated")


def count_zstd_blocks(payload: memoryview, enough: int) -> int:
    """How many blocks have to be inflated, counted up to `enough`. Each inflates to at most 128 KiB."""
    count = 0
    try:
        for _ in itertools.islice(_zstd_blocks(payload), enough):
            count += 1
    except (_BrokenError, zstandard.ZstdError):
        pass  # inflating stops there too
    return count


def _inflate_snappy(payload: memoryview) -> Iterator[Octets]:
    """Inflate blocks in the xerial framing, which Java clients send, or one unframed block, which librdkafka sends."""
    if payload[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield _inflate_snappy_block(payload)
        return
    position = 0
    while position < len(payload):
        if payload[position : position + len(XERIAL_MAGIC)] == XERIAL_MAGIC:  # streams may follow one another
            position += _XERIAL_HEADER_SIZE
            continue
        if len(payload) - position < 4:
            raise _BrokenError("it is truncated")
        (size,) = struct.unpack_from(">i", payload, position)
        position += 4
        if not 0 <= size <= len(payload) - position:
            raise _BrokenError(f"it has a block of {size} bytes, but {len(payload) - position} are left")
        if size:
            yield _inflate_snappy_block(payload[position : position + size])
        position += size


def _inflate_snappy_block(block: memoryview) -> Octets:
    claimed = cramjam.snappy.decompress_raw_len(block)
    if claimed > SNAPPY_MAX_RATIO * len(block) or claimed > INFLATED_BYTES_LIMIT:
        raise _BrokenError(f"it has a block of {len(block)} bytes that claims to inflate to {claimed}")
    return memoryview(cramjam.snappy.decompress_raw(block, output_len=claimed))


_INFLATERS = {
    Codec.NONE: _inflate_none,
    Codec.GZIP: _inflate_gzip,
    Codec.SNAPPY: _inflate_snappy,
    Codec.LZ4: _inflate_lz4,
    Codec.ZSTD: _inflate_zstd,
}
