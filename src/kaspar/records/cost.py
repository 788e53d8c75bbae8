"""Estimates from its header how long checking a batch takes, so that an event loop runs only short checks.

The sender chooses the bytes, so these are upper bounds: the time that the worst bytes of that size take, measured on
one core of a small machine. A gzip bomb inflates a thousandfold; a zstd block is at most 128 KiB inflated, whatever its
size, so blocks are counted. The walk stops after as many records as the header counts.

There is one exception: the worst lz4 frame takes thirty times as long as a usual one, and usual ones are frequent.
Blocks of 64 KiB take 0.1 ms at worst and 0.02 ms usually. So such a frame is tried, and the check is abandoned between
two blocks after INLINE_CHECK_NS.
"""

import struct

from kaspar.records.codec import Codec, Octets
from kaspar.records.core import checking
from kaspar.records.inflate import count_zstd_blocks, is_usual_lz4
from kaspar.records.layout import CODEC_MASK, COUNT_AT, HEADER_SIZE, LOW_ATTRIBUTES_AT, SMALLEST_RECORD_SIZE

INLINE_CHECK_NS = 1_000_000

_CALL_NS = 1_000
_RECORD_NS = 15 if checking.IS_COMPILED else 5_000
QUICK_RECORDS = INLINE_CHECK_NS * 7 // 10 // _RECORD_NS
"""A batch of at most 4 MiB that is not compressed is checked inline if it has no more records than this."""

_ZSTD_BLOCK_NS = 190_000
_USUAL_LZ4_NS_PER_KIB = 800
_NS_PER_KIB = {Codec.NONE: 50, Codec.GZIP: 280_000, Codec.SNAPPY: 5_000, Codec.LZ4: 9_000, Codec.ZSTD: 0}
_COUNT = struct.Struct(">i")


def check_cost_ns(buffer: Octets, start: int, end: int) -> int:
    """About how many nanoseconds check_batch takes for these bytes: at most, or usually if it can be abandoned."""
    size = end - start
    if size < HEADER_SIZE:
        return _CALL_NS
    codec = buffer[start + LOW_ATTRIBUTES_AT] & CODEC_MASK
    if codec >= len(_NS_PER_KIB):
        return _CALL_NS + size * _NS_PER_KIB[Codec.NONE] // 1024
    records: int = max(0, _COUNT.unpack_from(buffer, start + COUNT_AT)[0])
    if codec == Codec.NONE:
        records = min(records, size // SMALLEST_RECORD_SIZE)
    payload = memoryview(buffer)[start + HEADER_SIZE : end]
    if codec == Codec.ZSTD:
        enough = INLINE_CHECK_NS // _ZSTD_BLOCK_NS + 1
        inflating_ns = count_zstd_blocks(payload, enough) * _ZSTD_BLOCK_NS
    elif codec == Codec.LZ4 and is_usual_lz4(payload):
        inflating_ns = size * _USUAL_LZ4_NS_PER_KIB // 1024
    else:
        inflating_ns = size * _NS_PER_KIB[Codec(codec)] // 1024
    return _CALL_NS + inflating_ns + records * _RECORD_NS


def checks_inline(buffer: Octets, start: int, end: int) -> bool:
    """Whether check_batch takes less than about a millisecond for these bytes, or is abandoned then."""
    return check_cost_ns(buffer, start, end) < INLINE_CHECK_NS
