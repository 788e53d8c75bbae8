"""Iterates over the record batches of a segment file, up to the first that is not whole and valid.

Used by everything that reads the data itself: recovery after a crash (with checksums), rebuilding producer state,
finding a batch near a position, and searching for a timestamp.
"""

import struct
import zlib
from collections.abc import Iterator

from crc32c import crc32c

from kaspar.base.errors import KasparError
from kaspar.records import HEADER_SIZE, BatchHeader, read_header
from kaspar.records.layout import LENGTH_OVERHEAD, MAGIC
from kaspar.storage.disk.files import Files

_CRC_COVERS_FROM = 21
_START = struct.Struct(">qiiBI")  # base offset, length, leader epoch, magic, crc
_OLD_START = struct.Struct(">qiIB")  # offset, length, crc, magic
_CHUNK_BYTES = 1 << 20


class OldRecords(KasparError):
    """An intact message of format v0 or v1: it is not damaged, but this format is not supported."""


class BatchScan:
    """Iterates over (position, header, bytes of the batch). Afterwards `position` is the end of the valid batches."""

    __slots__ = ("_check", "_chunk_bytes", "_end", "_fd", "_files", "position", "problem")

    def __init__(
        self, files: Files, fd: int, position: int, end: int, *, check: bool = False, chunk_bytes: int = _CHUNK_BYTES
    ) -> None:
        self._files = files
        self._fd = fd
        self._end = end
        self._check = check
        self._chunk_bytes = chunk_bytes
        self.position = position
        self.problem: str | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        wanted = self._chunk_bytes
        while self.position < self._end:
            origin = self.position
            data = memoryview(self._files.pread(self._fd, min(wanted, self._end - origin), origin))
            here, length = 0, len(data)
            if length == 0:
                self.problem = "the file ends early"
                return
            while length - here >= HEADER_SIZE:
                _, batch_length, _, magic, crc = _START.unpack_from(data, here)
                size = batch_length + LENGTH_OVERHEAD
                if magic != MAGIC or size < HEADER_SIZE:
                    self._refuse_old_records(data[here:])
                    self.problem = "not a record batch"
                    return
                if here + size > length:
                    break
                batch = data[here : here + size]
                if self._check and crc32c(batch[_CRC_COVERS_FROM:]) != crc:
                    self.problem = "the checksum is wrong"
                    return
                header = read_header(batch, 0)
                yield origin + here, header, batch
                here += size
                self.position = origin + here
            remaining = self._end - self.position
            if remaining == 0:
                return
            needed = HEADER_SIZE
            if length - here >= HEADER_SIZE:
                needed = _START.unpack_from(data, here)[1] + LENGTH_OVERHEAD
            if needed > remaining:
                self._refuse_old_records(data[here:])
                self.problem = "the last record batch is truncated"
                return
            wanted = max(self._chunk_bytes, needed)

    def _refuse_old_records(self, data: memoryview) -> None:
        """Raise OldRecords if these bytes are a valid message of an older format, which must not be cut off."""
        if len(data) < _OLD_START.size:
            return
        _, length, crc, magic = _OLD_START.unpack_from(data)
        end = LENGTH_OVERHEAD + length
        if magic in (0, 1) and 14 <= length <= len(data) - LENGTH_OVERHEAD and zlib.crc32(data[16:end]) == crc:
            raise OldRecords(
                f"there are records of message format v{magic}; only v2 is supported, which Kafka 3 and later write"
            )
