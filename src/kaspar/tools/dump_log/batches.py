"""The batches of a log file, as Kafka's FileRecords reads them: up to the first incomplete one.

A CRC mismatch does not end the iteration, because the command is used for damaged logs.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from kaspar.base.errors import MalformedBytes
from kaspar.records import BatchHeader, read_header
from kaspar.records.layout import HEADER_SIZE, LENGTH_AT, LENGTH_OVERHEAD, MAGIC_AT
from kaspar.tools.dump_log.errors import CannotDump

_LENGTH = struct.Struct(">i")
_UP_TO_MAGIC = MAGIC_AT + 1
_SMALLEST_LENGTH = 14  # Kafka's LegacyRecord.RECORD_OVERHEAD_V0


@contextmanager
def opened(path: str) -> Iterator[memoryview]:
    """The file's bytes, memory-mapped because a segment may be larger than the free memory."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as problem:
        raise CannotDump(path if isinstance(problem, FileNotFoundError) else f"{path} ({problem.strerror})") from None
    try:
        if os.fstat(descriptor).st_size == 0:
            yield memoryview(b"")
            return
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            yield view
    finally:
        os.close(descriptor)


def iter_batches(data: memoryview, start: int, end: int, path: str) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of each batch. Raises CannotDump for an invalid size."""
    while end - start >= _UP_TO_MAGIC:
        (length,) = _LENGTH.unpack_from(data, start + LENGTH_AT)
        if length < _SMALLEST_LENGTH:
            raise CannotDump(
                f"Found record size {length} smaller than minimum record overhead ({_SMALLEST_LENGTH}) in file {path}."
            )
        if start + LENGTH_OVERHEAD + length > end:
            return
        yield start, _header(data, start, length)
        start += LENGTH_OVERHEAD + length


def _header(data: memoryview, start: int, length: int) -> BatchHeader:
    if length + LENGTH_OVERHEAD < HEADER_SIZE:
        raise CannotDump(
            f"The batch at position {start} of {length + LENGTH_OVERHEAD} bytes has no header of format v2"
        )
    try:
        return read_header(data, start)
    except MalformedBytes as problem:
        raise CannotDump(f"The batch at position {start} is not of format v2: {problem}") from None
