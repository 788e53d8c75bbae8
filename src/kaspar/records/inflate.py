"""Inflates the records of a compressed batch in bounded chunks, so that a compression bomb costs little memory.

What a stranger compressed may be anything. So every library is fed a small piece at a time and asked for at most
CHUNK_BYTES back, the inflated bytes are counted against INFLATED_BYTES_LIMIT, and whatever a library has to complain
about becomes a Refused. The exception is snappy, whose blocks can only be inflated whole: there a block cannot grow by
more than SNAPPY_MAX_RATIO, and one that claims to is refused before any memory is taken.

The libraries release the GIL while they inflate.
"""

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

_PIECE_BYTES = 16 * 1024
_ZSTD_WINDOW_LIMIT = 1 << 27  # what zstd's own tools accept; level 22 needs it
_XERIAL_HEADER_SIZE = 16
_LZ4_MAGIC = b"\x04\x22\x4d\x18"


def inflate(codec: Codec, payload: Octets) -> Iterator[Octets]:
    """The inflated bytes of `payload`, chunk by chunk. Raises Refused(INVALID_RECORD) for bytes that do not inflate."""
    inflated = 0
    try:
        for chunk in _INFLATERS[codec](memoryview(payload)):
            inflated += len(chunk)
            if inflated > INFLATED_BYTES_LIMIT:
                raise Refused(
                    ErrorCode.MESSAGE_TOO_LARGE, f"the batch inflates to more than {INFLATED_BYTES_LIMIT} bytes"
                )
            yield chunk
    except (zlib.error, RuntimeError, EOFError, zstandard.ZstdError, cramjam.DecompressionError) as error:
        raise Refused(ErrorCode.INVALID_RECORD, f"the batch's {codec.name.lower()} data is broken: {error}") from error


def _inflate_none(payload: memoryview) -> Iterator[Octets]:
    yield payload


def _inflate_gzip(payload: memoryview) -> Iterator[Octets]:
    position = 0
    while position < len(payload):  # one round per gzip member: Kafka's readers take several in a row
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if position == len(payload):
                raise EOFError("it ends too early")
            piece: Octets = payload[position : position + _PIECE_BYTES]
            position += len(piece)
            while piece and not member.eof:
                yield member.decompress(piece, CHUNK_BYTES)
                piece = member.unconsumed_tail
        position -= len(member.unused_data)


def _inflate_lz4(payload: memoryview) -> Iterator[Octets]:
    # Kafka's reader takes one frame, and only with independent blocks and no dictionary. What it could not read
    # must not get into the log.
    if payload[:4] != _LZ4_MAGIC or len(payload) < 5 or payload[4] & 0b11100011 != 0b01100000:
        raise RuntimeError("it is not an lz4 frame of version 1 with independent blocks")
    frame = lz4.frame.LZ4FrameDecompressor()
    position = 0
    while not frame.eof:
        if not frame.needs_input:
            yield frame.decompress(b"", CHUNK_BYTES)
            continue
        if position == len(payload):
            raise EOFError("it ends too early")
        piece = payload[position : position + _PIECE_BYTES]
        position += len(piece)
        yield frame.decompress(piece, CHUNK_BYTES)
    if position < len(payload) or frame.unused_data:
        raise RuntimeError("bytes follow the frame")


def _inflate_zstd(payload: memoryview) -> Iterator[Octets]:
    frames = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_LIMIT)
    with frames.stream_reader(payload, read_size=_PIECE_BYTES, read_across_frames=True) as reader:
        while chunk := reader.read(CHUNK_BYTES):
            yield chunk


def _inflate_snappy(payload: memoryview) -> Iterator[Octets]:
    """Blocks in the xerial framing, which Java clients send, or one block with no framing, which librdkafka sends."""
    if payload[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield _inflate_snappy_block(payload)
        return
    position = 0
    while position < len(payload):
        if payload[position : position + len(XERIAL_MAGIC)] == XERIAL_MAGIC:  # streams may follow one another
            position += _XERIAL_HEADER_SIZE
            continue
        if len(payload) - position < 4:
            raise EOFError("it ends too early")
        (size,) = struct.unpack_from(">i", payload, position)
        position += 4
        if not 0 <= size <= len(payload) - position:
            raise EOFError(f"a block of {size} bytes where {len(payload) - position} are left")
        if size:
            yield _inflate_snappy_block(payload[position : position + size])
        position += size


def _inflate_snappy_block(block: memoryview) -> Octets:
    claimed = cramjam.snappy.decompress_raw_len(block)
    if claimed > SNAPPY_MAX_RATIO * len(block) or claimed > INFLATED_BYTES_LIMIT:
        raise EOFError(f"a block of {len(block)} bytes cannot inflate to {claimed}")
    return memoryview(cramjam.snappy.decompress_raw(block, output_len=claimed))


_INFLATERS = {
    Codec.NONE: _inflate_none,
    Codec.GZIP: _inflate_gzip,
    Codec.SNAPPY: _inflate_snappy,
    Codec.LZ4: _inflate_lz4,
    Codec.ZSTD: _inflate_zstd,
}
