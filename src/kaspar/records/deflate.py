"""Compresses the records of a batch, chunk by chunk, in the formats that Kafka's clients read.

Levels are those of Kafka's settings compression.gzip.level, compression.lz4.level and compression.zstd.level; None is
the codec's default. Snappy has no levels.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator

import cramjam
import lz4.frame
import zstandard

from kaspar.records.codec import Codec, Octets
from kaspar.records.inflate import XERIAL_MAGIC

_XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK_BYTES = 32 * 1024
_LZ4_USUAL_LEVEL = 9  # Kafka's name for the fast compressor; every other level selects the thorough one


def deflate(codec: Codec, chunks: Iterable[Octets], level: int | None = None) -> Iterator[Octets]:
    """Compress all `chunks` together."""
    match codec:
        case Codec.NONE:
            yield from chunks
        case Codec.GZIP:
            yield from _deflate_gzip(chunks, -1 if level is None else level)
        case Codec.SNAPPY:
            yield from _deflate_snappy(chunks)
        case Codec.LZ4:
            yield from _deflate_lz4(chunks, _LZ4_USUAL_LEVEL if level is None else level)
        case Codec.ZSTD:
            yield from _deflate_zstd(chunks, 3 if level is None else level)


def _deflate_gzip(chunks: Iterable[Octets], level: int) -> Iterator[Octets]:
    stream = zlib.compressobj(level, wbits=31)
    for chunk in chunks:
        yield stream.compress(chunk)
    yield stream.flush()


def _deflate_snappy(chunks: Iterable[Octets]) -> Iterator[Octets]:
    yield _XERIAL_HEADER
    for chunk in chunks:
        view = memoryview(chunk)
        for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
            block = memoryview(cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
            yield struct.pack(">i", len(block))
            yield block


def _deflate_lz4(chunks: Iterable[Octets], level: int) -> Iterator[Octets]:
    frame = lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        compression_level=0 if level == _LZ4_USUAL_LEVEL else max(level, lz4.frame.COMPRESSIONLEVEL_MINHC),
    )
    yield frame.begin()
    for chunk in chunks:
        yield frame.compress(chunk)
    yield frame.flush()


def _deflate_zstd(chunks: Iterable[Octets], level: int) -> Iterator[Octets]:
    stream = zstandard.ZstdCompressor(level=level).compressobj()
    for chunk in chunks:
        yield stream.compress(chunk)
    yield stream.flush()
