# The part of lz4.frame that Kaspar uses.

from kaspar.records.codec import Octets

BLOCKSIZE_MAX64KB: int
BLOCKSIZE_MAX1MB: int
COMPRESSIONLEVEL_MINHC: int

class LZ4FrameCompressor:
    def __init__(self, *, block_size: int = ..., block_linked: bool = ..., compression_level: int = ...) -> None: ...
    def begin(self, source_size: int = 0) -> bytes: ...
    def compress(self, data: Octets) -> bytes: ...
    def flush(self) -> bytes: ...

class LZ4FrameDecompressor:
    eof: bool
    needs_input: bool
    unused_data: bytes | None
    def decompress(self, data: Octets, max_length: int = ...) -> bytes: ...

def get_frame_info(frame: Octets) -> dict[str, object]: ...
