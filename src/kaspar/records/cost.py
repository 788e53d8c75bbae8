"""Which batches are checked so quickly that an event loop may do it itself."""

from kaspar.records.codec import Codec

INLINE_CHECK_BYTES = {
    Codec.NONE: 1024 * 1024,
    Codec.GZIP: 16 * 1024,
    Codec.SNAPPY: 64 * 1024,
    Codec.LZ4: 16 * 1024,
    Codec.ZSTD: 16 * 1024,
}


def checks_inline(codec: Codec, size: int) -> bool:
    """Whether check_batch takes less than about a millisecond on a batch of `size` bytes."""
    return size <= INLINE_CHECK_BYTES[codec]
