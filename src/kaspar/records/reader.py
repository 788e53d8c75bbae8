"""Reads the records out of batches, one after the other, for those who need to see each of them."""

from collections.abc import Iterator

from kaspar.base.errors import MalformedBytes, Refused
from kaspar.records.batch import HEADER_SIZE, BatchHeader, core, iter_headers
from kaspar.records.codec import Octets
from kaspar.records.inflate import inflate
from kaspar.records.record import Record


def iter_records(buffer: Octets, start: int = 0, end: int | None = None) -> Iterator[Record]:
    """Every record of every whole batch, control batches too. Raises MalformedBytes at what cannot be read."""
    view = memoryview(buffer)
    for position, header in iter_headers(view, start, len(view) if end is None else end):
        yield from iter_batch(view, position, header)


def iter_batch(buffer: Octets, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records of the one batch at `position`, inflated piece by piece."""
    reader = core.RecordReader(
        header.base_offset, header.base_timestamp, header.max_timestamp if header.is_log_append_time else None
    )
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    left = header.count
    rest = b""
    try:
        for piece in inflate(header.codec, payload):
            rest += piece
            records, used = reader.read(rest, left)
            left -= len(records)
            rest = rest[used:]
            yield from records
    except Refused as refused:
        raise MalformedBytes(refused.message) from refused
    if left or rest:
        raise MalformedBytes(
            f"a batch of {header.count} records lacks {left} of them and has {len(rest)} bytes too many"
        )
