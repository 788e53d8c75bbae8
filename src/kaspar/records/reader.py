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
    if header.count == 0:  # compaction leaves such a batch to remember its producer's last sequence
        return
    reader = core.RecordReader(
        header.base_offset, header.base_timestamp, header.max_timestamp if header.is_log_append_time else None
    )
    left = header.count
    for piece in record_pieces(buffer, position, header):
        records = reader.read(bytes(piece), left)
        left -= len(records)
        yield from records
    if left:
        raise MalformedBytes(f"a batch of {header.count} records lacks {left}")


def record_pieces(buffer: Octets, position: int, header: BatchHeader) -> Iterator[Octets]:
    """The inflated records of the batch at `position`, in pieces of whole records: never more than a few of them, and
    the largest, at once. Raises MalformedBytes where they cannot be inflated or end within a record."""
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    if header.codec is Codec.NONE:
        yield payload
        return
    pieces: list[Octets] = []
    held = wanted = 0
    try:
        for piece in inflate(header.codec, payload):
            pieces.append(piece)
            held += len(piece)
            if held < wanted:  # joined once the next record is whole, so that a large one is not copied again and again
                continue
            records = piece if len(pieces) == 1 else b"".join(pieces)
            end, wanted = core.whole_records(records)
            if end < 0:
                raise unreadable(header.base_offset)
            # Nothing but what is yielded holds on to a large record.
            pieces = [bytes(memoryview(records)[end:])]
            held -= end
            if end:
                yield memoryview(records)[:end]
    except Refused as refused:
        raise MalformedBytes(refused.message) from refused
    if held:
        raise unreadable(header.base_offset)


def unreadable(base_offset: int) -> MalformedBytes:
    return MalformedBytes(f"the records of the batch at offset {base_offset} cannot be read")
