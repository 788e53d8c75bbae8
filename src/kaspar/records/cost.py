"""What checking a batch costs, told from its header, so that an event loop checks only what takes no time.

The sender chooses the bytes, so these are upper bounds: the work that the worst bytes of that size could make, measured
on one core of a small machine. A gzip bomb makes a thousand bytes of one; a zstd block is at most 128 KiB inflated,
whatever its size, so its blocks are counted. The walk stops after as many records as the header says.

With one exception: the worst lz4 frame takes thirty times as long as a usual one, and usual ones come all the time. Its
blocks of 64 KiB take 0.1 ms at worst and 0.02 ms as a rule, so such a frame is tried, and the check is given up between
two of its blocks when INLINE_CHECK_NS have gone by.
"""

import struct

from kaspar.records.batch import CODEC_MASK, HEADER_SIZE, core
from kaspar.records.codec import Codec, Octets
from kaspar.records.inflate import count_zstd_blocks, is_usual_lz4

INLINE_CHECK_NS = 1_000_000

_CALL_NS = 1_000
_RECORD_NS = 15 if core.IS_COMPILED else 5_000
_SMALLEST_RECORD_SIZE = 7
QUICK_RECORDS = INLINE_CHECK_NS * 7 // 10 // _RECORD_NS
"""So many records of a batch of at most 4 MiB that is not compressed are checked inline, whatever they are."""

_ZSTD_BLOCK_NS = 190_000
_USUAL_LZ4_NS_PER_KIB = 800
_NS_PER_KIB = {Codec.NONE: 50, Codec.GZIP: 280_000, Codec.SNAPPY: 5_000, Codec.LZ4: 9_000, Codec.ZSTD: 0}
_COUNT = struct.Struct(">i")
_COUNT_POSITION = 57
_CODEC_POSITION = 22


def check_cost_ns(buffer: Octets, start: int, end: int) -> int:
    """About how many nanoseconds check_batch takes for these bytes at most, or as a rule if it can be given up."""
    size = end - start
    if size < HEADER_SIZE:
        return _CALL_NS
    codec = buffer[start + _CODEC_POSITION] & CODEC_MASK
    if codec >= len(_NS_PER_KIB):
        return _CALL_NS + size * _NS_PER_KIB[Codec.NONE] // 1024
    records: int = max(0, _COUNT.unpack_from(buffer, start + _COUNT_POSITION)[0])
    if codec == Codec.NONE:
        records = min(records, size // _SMALLEST_RECORD_SIZE)
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
    """Whether check_batch takes less than about a millisecond for these bytes, or is given up then."""
    return check_cost_ns(buffer, start, end) < INLINE_CHECK_NS
