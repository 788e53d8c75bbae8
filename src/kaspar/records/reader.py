"""Reads the records out of batches, one after the other, for those who need to see each of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kaspar.base.compiled import load
from kaspar.base.errors import MalformedBytes, Refused
from kaspar.records.batch import HEADER_SIZE, BatchHeader, iter_headers
from kaspar.records.codec import Codec, Octets
from kaspar.records.inflate import inflate
from kaspar.records.record import Record

if TYPE_CHECKING:
    from kaspar.records import reading_core as core
else:
    core = load("kaspar.records.reading_core")


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
    if header.count == 0:  # compaction leaves such a batch to remember its producer's last sequence
        return
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    if header.codec is Codec.NONE:
        yield from _read_plain(reader, payload, header)
        return
    left = header.count
    pieces: list[Octets] = []
    held = wanted = 0
    try:
        for piece in inflate(header.codec, payload):
            pieces.append(piece)
            held += len(piece)
            if held < wanted:  # joined once the next record is whole, so that a large one is not copied again and again
                continue
            data = b"".join(pieces)
            records, used, wanted = reader.read(data, left)
            left -= len(records)
            pieces = [data[used:]]
            held -= used
            yield from records
    except Refused as refused:
        raise MalformedBytes(refused.message) from refused
    if left or held:
        raise _torn(header, left, held)


def _read_plain(reader: core.RecordReader, payload: memoryview, header: BatchHeader) -> list[Record]:
    records, used, _ = reader.read(bytes(payload), header.count)
    if len(records) != header.count or used != len(payload):
        raise _torn(header, header.count - len(records), len(payload) - used)
    return records


def _torn(header: BatchHeader, left: int, held: int) -> MalformedBytes:
    return MalformedBytes(f"a batch of {header.count} records lacks {left}, with {held} bytes left over")
