"""Walks the record batches of a segment file, reading large pieces, and stops at the first that is not whole and valid.

Used where data itself has to be looked at: recovery after a crash (with checksums), rebuilding producer state, finding
a batch near a position, and looking for a timestamp.
"""

import struct
import zlib
from collections.abc import Iterator

from crc32c import crc32c

from kaspar.base.errors import KasparError
from kaspar.records import HEADER_SIZE, BatchHeader, read_header
from kaspar.storage.files import Files

OVERHEAD = 12  # the base offset and the length itself, which the length does not count
_CRC_COVERS_FROM = 21
_START = struct.Struct(">qiiBI")  # base offset, length, leader epoch, magic, crc
_OLD_START = struct.Struct(">qiIB")  # offset, length, crc, magic
_PIECE = 1 << 20


class OldRecords(KasparError):
    """An intact message of format v0 or v1: not damage, but nothing that this program can serve."""


class BatchScan:
    """Iterate over it for (position, header, bytes of the batch); `position` is where the valid batches end."""

    __slots__ = ("_check", "_end", "_fd", "_files", "_piece", "position", "problem")

    def __init__(
        self, files: Files, fd: int, position: int, end: int, *, check: bool = False, piece: int = _PIECE
    ) -> None:
        self._files = files
        self._fd = fd
        self._end = end
        self._check = check
        self._piece = piece
        self.position = position
        self.problem: str | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        wanted = self._piece
        while self.position < self._end:
            origin = self.position
            data = memoryview(self._files.pread(self._fd, min(wanted, self._end - origin), origin))
            here, length = 0, len(data)
            if length == 0:
                self.problem = "the file ends early"
                return
            while length - here >= HEADER_SIZE:
                _, batch_length, _, magic, crc = _START.unpack_from(data, here)
                size = batch_length + OVERHEAD
                if magic != 2 or size < HEADER_SIZE:
                    self._refuse_old_records(data[here:])
                    self.problem = "what stands there is no record batch"
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
                needed = _START.unpack_from(data, here)[1] + OVERHEAD
            if needed > remaining:
                self._refuse_old_records(data[here:])
                self.problem = "the last record batch is cut off"
                return
            wanted = max(self._piece, needed)

    def _refuse_old_records(self, data: memoryview) -> None:
        """What is no batch of today's format may be a sound message of an older one, which must not be cut off."""
        if len(data) < _OLD_START.size:
            return
        _, length, crc, magic = _OLD_START.unpack_from(data)
        end = OVERHEAD + length
        if magic in (0, 1) and 14 <= length <= len(data) - OVERHEAD and zlib.crc32(data[16:end]) == crc:
            raise OldRecords(
                f"records of format v{magic} are here; Kaspar reads format v2 only, as Kafka 3 and later write it"
            )
