"""Reads the records of batches one by one, as Python objects."""

from collections.abc import Iterator, Sequence

from kaspar.base.errors import MalformedBytes, Refused
from kaspar.records.batch import BatchHeader, iter_headers
from kaspar.records.codec import Codec, Octets
from kaspar.records.core import batch_selection, reading
from kaspar.records.inflate import inflate
from kaspar.records.layout import HEADER_SIZE
from kaspar.records.record import Record


def iter_records(buffer: Octets, start: int = 0, end: int | None = None) -> Iterator[Record]:
    """Every record of every whole batch, including control batches. Raises MalformedBytes."""
    view = memoryview(buffer)
    for position, header in iter_headers(view, start, len(view) if end is None else end):
        yield from iter_batch(view, position, header)


def iter_batch(buffer: Octets, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records of the one batch at `position`, inflated piece by piece."""
    if header.count == 0:  # compaction keeps such a batch for its producer's last sequence
        return
    reader = reading.RecordReader(
        header.base_offset, header.base_timestamp, header.max_timestamp if header.is_log_append_time else None
    )
    left = header.count
    for piece in record_pieces(buffer, position, header):
        records = reader.read(bytes(piece), left)
        left -= len(records)
        yield from records
    if left:
        raise MalformedBytes(f"{left} of the {header.count} records of a batch are missing")


def iter_visible(records: memoryview, aborted: Sequence[tuple[int, int]], start: int, until: int) -> Iterator[Record]:
    """The records of a fetch response that a consumer sees, from offset `start` on and below `until`: without control
    batches and aborted transactions, given by producer and first offset. CRCs are checked. Raises MalformedBytes."""
    selector = batch_selection.BatchSelector()
    selector.give(records, aborted)
    while (header := selector.select(start, until)) is not None:
        for record in iter_batch(records, selector.position, header):
            if start <= record.offset < until:
                yield record


def record_pieces(buffer: Octets, position: int, header: BatchHeader) -> Iterator[Octets]:
    """The inflated records of the batch at `position`, in pieces of whole records, so that only a small part of the
    batch is in memory at a time. Raises MalformedBytes if they cannot be inflated or end within a record."""
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
            if held < wanted:  # joined once the next record is whole, so that a large one is copied once
                continue
            records = piece if len(pieces) == 1 else b"".join(pieces)
            end, wanted = reading.whole_records(records)
            if end < 0:
                raise unreadable(header.base_offset)
            # A copy, so that only the yielded piece keeps a large record alive.
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
