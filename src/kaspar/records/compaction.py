"""Compaction of record batches: what the last offset of every key is, and which records stay because of it.

A `KeyMap` is filled with the newer part of a log; a `BatchFilter` then goes over all of it, from its beginning. Both
take bytes as they are read from a segment: runs of plain batches go through the compiled core in one call, without the
GIL; a batch that is compressed, in a transaction or a control batch comes one by one, after the caller has decided
about its transaction. Both raise MalformedBytes where records cannot be read.

A batch that is rebuilt keeps its offsets, its producer and sequences, its leader epoch, its codec, and the timestamps
of its records; the records that went leave gaps between the offsets of the others.
"""

import mmap
import secrets
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaspar.base.compiled import load
from kaspar.base.errors import MalformedBytes, Refused
from kaspar.records.batch import HEADER_SIZE, BatchHeader
from kaspar.records.codec import Codec, Octets
from kaspar.records.deflate import deflate
from kaspar.records.inflate import INFLATED_BYTES_LIMIT, inflate

if TYPE_CHECKING:
    from kaspar.records import compaction_core as core
else:
    core = load("kaspar.records.compaction_core")

__all__ = ["BatchFate", "BatchFilter", "IndexPoints", "KeyMap", "core", "whole_batches"]

whole_batches = core.whole_batches
IndexPoints = core.IndexPoints

SLOT_BYTES = 24  # as many as in Kafka, so that log.cleaner.dedupe.buffer.size means the same
_WORD_BYTES = 8
_SMALLEST_RECORD_SIZE = 7

# A batch that inflates to more is inflated a second time when it has to be rebuilt, so that a compression bomb takes
# time and not memory.
_HELD_BYTES = 8 * 1024 * 1024


class KeyMap:
    """The last offset of each key, in one block of memory that is taken page by page as keys come.

    `latest_offset` is that of the last record or batch that was mapped: of everything before it, from where the filling
    began, the map knows every key.
    """

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self.slot_count = memory_bytes // SLOT_BYTES
        self.capacity = int(self.slot_count * load_factor)
        if self.capacity < 1:
            raise ValueError(f"{memory_bytes} bytes are too few for the hash and offset of a single key")
        self.clear()

    def clear(self) -> None:
        """Forget every key, and hash the next ones in another way."""
        self._memory = mmap.mmap(-1, self.slot_count * SLOT_BYTES)
        slots = memoryview(self._memory).cast("Q")
        self.table = core.KeyTable(slots, self.capacity, (secrets.randbits(64), secrets.randbits(64)))

    def __len__(self) -> int:
        return self.table.count

    @property
    def is_full(self) -> bool:
        """A key came that had no room. What was mapped before it stands."""
        return self.table.is_full

    @property
    def latest_offset(self) -> int:
        return self.table.latest_offset

    @latest_offset.setter
    def latest_offset(self, offset: int) -> None:
        self.table.latest_offset = offset

    @property
    def records_read(self) -> int:
        return self.table.records_read

    def put(self, key: bytes, offset: int) -> bool:
        """False if the key is new and no more fit."""
        return self.table.put(key, offset)

    def get(self, key: bytes) -> int:
        """The last offset of the key; -1 if it is not known."""
        return self.table.get(key)

    def map_plain(self, data: Octets, start: int, end: int, first_offset: int, end_offset: int) -> int:
        """Map the records from `first_offset` on of the whole batches in `data[start:end]`, up to a batch that has to
        be judged, is not below `end_offset`, or does not fit: where that one begins."""
        position = self.table.map_plain(data, start, end, first_offset, end_offset)
        if self.table.is_damaged:
            raise _unreadable(data, position)
        return position

    def map_batch(self, data: Octets, position: int, header: BatchHeader, first_offset: int) -> bool:
        """Map the records from `first_offset` on of the one batch at `position`. False if the map is full."""
        table = self.table
        mapped = 0
        for records in _records_of(data, position, header):
            mapped += table.map_records(records, 0, header.base_offset, first_offset)
            if table.is_full:
                return False
            if table.is_damaged:
                break
        if table.is_damaged or mapped != header.count:
            raise _unreadable(data, position)
        self.skip_batch(header, first_offset)
        return True

    def skip_batch(self, header: BatchHeader, first_offset: int) -> None:
        """A batch of which no record is mapped: it was aborted, or is no data."""
        if header.last_offset >= first_offset:
            self.table.latest_offset = header.last_offset


@dataclass(frozen=True, slots=True)
class BatchFate:
    """What was decided about a batch before its records are looked at."""

    drops_records: bool = False
    """None of them stays: they were aborted, or it is a marker whose time has come."""
    ends_nothing: bool = False
    """It is a marker with nothing left to end: it gets a delete horizon."""
    keeps_empty: bool = False
    """It stays as an empty batch if no record does: it is the marker that says the last of its producer."""


class BatchFilter:
    """Takes batches in the order of their offsets; what stays is collected until `take`."""

    def __init__(
        self, keys: KeyMap, last_data_offsets: Iterable[int], end_offset: int, now_ms: int, delete_retention_ms: int
    ) -> None:
        """`last_data_offsets`: of the last batch of each producer; that one, and the batch that ends before
        `end_offset`, stay even if they are empty."""
        self._last_data_offsets = array("q", sorted(last_data_offsets))
        self._filter = core.RecordFilter(
            keys.table, memoryview(self._last_data_offsets), end_offset, now_ms, delete_retention_ms
        )

    @property
    def records_read(self) -> int:
        return self._filter.records_read

    @property
    def records_kept(self) -> int:
        return self._filter.records_kept

    @property
    def records_without_key(self) -> int:
        return self._filter.records_without_key

    def take(self) -> memoryview:
        """The batches that stay, of those that were filtered since the last time. To be used before the next ones are
        filtered, which take their place."""
        return self._filter.seal()

    def filter_plain(self, data: Octets, start: int, end: int) -> int:
        """Filter the whole batches in `data[start:end]`, up to one that has to be judged: where that one begins."""
        position = self._filter.filter_plain(data, start, end)
        if self._filter.is_damaged:
            raise _unreadable(data, position)
        return position

    def filter_batch(self, data: Octets, position: int, header: BatchHeader, fate: BatchFate) -> None:
        """Filter the one batch at `position`."""
        if header.codec is Codec.NONE or header.count == 0 or fate.drops_records:
            self._filter.filter_batch(data, position, fate.drops_records, fate.ends_nothing, fate.keeps_empty)
        else:
            self._filter_compressed(data, position, header)
        if self._filter.is_damaged:
            raise _unreadable(data, position)

    def _filter_compressed(self, data: Octets, position: int, header: BatchHeader) -> None:
        if not 0 <= header.count <= INFLATED_BYTES_LIMIT // _SMALLEST_RECORD_SIZE:
            raise _unreadable(data, position)
        self._filter.begin(data, position)
        held: list[Octets] = []
        held_bytes = 0
        for records in _records_of(data, position, header):
            if not self._filter.judge(records):
                return
            held_bytes += len(records)
            if held_bytes <= _HELD_BYTES:
                held.append(records)
            else:
                held.clear()
        if self._filter.conclude(data, position):
            again = held if held_bytes <= _HELD_BYTES else _records_of(data, position, header)
            kept = b"".join(deflate(header.codec, map(self._filter.copy, again)))
            self._filter.put_rebuilt(data, position, kept)


def _records_of(data: Octets, position: int, header: BatchHeader) -> Iterator[Octets]:
    """The inflated records of the batch at `position`, in pieces of whole records."""
    payload = memoryview(data)[position + HEADER_SIZE : position + header.size]
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
                raise _unreadable(data, position)
            if end:
                yield memoryview(records)[:end]
            pieces = [memoryview(records)[end:]]
            held -= end
    except Refused as refused:
        raise MalformedBytes(refused.message) from refused
    if held:
        raise _unreadable(data, position)


def _unreadable(data: Octets, position: int) -> MalformedBytes:
    base_offset = int.from_bytes(data[position : position + 8], "big", signed=True)
    return MalformedBytes(f"the records of the batch at offset {base_offset} cannot be read")
