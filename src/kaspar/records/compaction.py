"""Compaction of record batches: the last offset of every key, and which records stay because of it.

A `KeyMap` is filled with the dirty part of a log; then a `BatchFilter` processes the whole log. Both take bytes as they
are read from a segment: runs of plain batches go through the compiled core in one call, without the GIL; compressed,
transactional and control batches are passed one by one, after the caller has decided about their transaction. Both
raise MalformedBytes if records cannot be read.

A rebuilt batch keeps its offsets, its producer and sequences, its leader epoch, its codec and the timestamps of its
records; removed records leave gaps between the offsets of the others.
"""

import mmap
import secrets
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from kaspar.base.errors import MalformedBytes
from kaspar.records.batch import BatchHeader
from kaspar.records.codec import Codec, Octets
from kaspar.records.core import batch_scanning, judging, key_collecting, key_table, rebuilding
from kaspar.records.deflate import deflate
from kaspar.records.inflate import INFLATED_BYTES_LIMIT
from kaspar.records.layout import SMALLEST_RECORD_SIZE
from kaspar.records.reader import record_pieces, unreadable

__all__ = [
    "BatchFate",
    "BatchFilter",
    "IndexPoints",
    "KeyMap",
    "batch_scanning",
    "judging",
    "key_collecting",
    "key_table",
    "rebuilding",
    "whole_batches",
]

whole_batches = batch_scanning.whole_batches
IndexPoints = batch_scanning.IndexPoints

SLOT_BYTES = 24  # as many as in Kafka, so that log.cleaner.dedupe.buffer.size has the same effect

# A batch that inflates to more is inflated again if it has to be rebuilt: a compression bomb costs time, not memory.
_HELD_BYTES = 8 * 1024 * 1024


class KeyMap:
    """The last offset of each key, in one block of memory. Only the part that the largest number of keys so far needed
    is ever touched.

    `latest_offset` is that of the last record or batch that was mapped: the map has every key from the first mapped
    offset up to it.
    """

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self._slot_count = memory_bytes // SLOT_BYTES
        self.capacity = int(self._slot_count * load_factor)
        if self.capacity < 1:
            raise ValueError(f"{memory_bytes} bytes are too few for the hash and offset of a single key")
        self._slots = memoryview(mmap.mmap(-1, self._slot_count * SLOT_BYTES)).cast("Q")
        self._begin(self._slot_count, self.capacity)

    def clear(self, most_keys: int | None = None) -> None:
        """Remove every key, and choose a new seed. If there will be at most `most_keys`, the table is smaller, which is
        faster and touches less memory."""
        # Zeroed rather than unmapped: unmapping takes long and would hold the GIL.
        self.table.wipe()
        if most_keys is not None and 2 * most_keys < self.capacity:
            self._begin(2 * most_keys + 1, 2 * most_keys + 1)
        else:
            self._begin(self._slot_count, self.capacity)

    def _begin(self, slot_count: int, capacity: int) -> None:
        slots = self._slots[: slot_count * key_table.SLOT_WORDS]
        self.table = key_table.KeyTable(slots, capacity, (secrets.randbits(64), secrets.randbits(64)))
        self._collector = key_collecting.KeyCollector()
        self.latest_offset = -1
        self.is_full = False
        """Whether there was no room for a key. The keys that were mapped before it remain valid."""

    def __len__(self) -> int:
        return self.table.count

    @property
    def records_read(self) -> int:
        return self._collector.records_read

    def put(self, key: bytes, offset: int) -> bool:
        """Store an offset. Returns False if the key is new and the map is full."""
        return self.table.put(key, offset)

    def get(self, key: bytes) -> int:
        """The last offset of the key; -1 if it is unknown."""
        return self.table.get(key)

    def map_plain(self, data: Octets, start: int, end: int, first_offset: int, end_offset: int) -> int:
        """Map the records from `first_offset` on of the whole batches in `data[start:end]`, up to a batch that is not
        plain or not below `end_offset`. Returns the position of that batch, which is meaningless if the map is full."""
        collector = self._collector
        position = collector.collect_plain(data, start, end, first_offset, end_offset)
        if self._put_collected(data):
            if collector.is_damaged:
                raise _unreadable(data, position)
            if collector.last_offset >= first_offset:
                self.latest_offset = collector.last_offset
        return position

    def map_batch(self, data: Octets, position: int, header: BatchHeader, first_offset: int) -> bool:
        """Map the records from `first_offset` on of the one batch at `position`. False if the map is full."""
        collector = self._collector
        left = header.count
        for records in record_pieces(data, position, header):
            left -= collector.collect(records, header.base_offset, first_offset, left)
            if collector.is_damaged:
                break
            if not self._put_collected(records):
                return False
        if collector.is_damaged or left:
            raise _unreadable(data, position)
        self.skip_batch(header, first_offset)
        return True

    def _put_collected(self, data: Octets) -> bool:
        """Store the collected keys. Returns False if the map is full."""
        collector = self._collector
        taken = self.table.put_all(data, collector.keys, collector.offsets, collector.count)
        if taken:
            self.latest_offset = collector.offsets[taken - 1]
        self.is_full = taken < collector.count
        return not self.is_full

    def skip_batch(self, header: BatchHeader, first_offset: int) -> None:
        """Skip a batch of which no record is mapped: it was aborted, or is a control batch."""
        if header.last_offset >= first_offset:
            self.latest_offset = header.last_offset


@dataclass(frozen=True, slots=True)
class BatchFate:
    """The decisions about a batch that are made before its records are read."""

    drops_records: bool = False
    """No record stays: they were aborted, or the batch is a marker past its delete horizon."""
    ends_nothing: bool = False
    """The batch is a marker whose transaction has no records left: it gets a delete horizon."""
    keeps_empty: bool = False
    """The batch stays even if it becomes empty: it is the last marker of its producer."""


class BatchFilter:
    """Filters batches in offset order, and collects those that stay until `take`."""

    def __init__(
        self, keys: KeyMap, last_data_offsets: Iterable[int], end_offset: int, now_ms: int, delete_horizon_ms: int
    ) -> None:
        """`last_data_offsets`: the offset of each producer's last batch. That batch, and the one that ends before
        `end_offset`, stay even if they are empty. Tombstones and markers are removed once `now_ms` has reached their
        delete horizon; `delete_horizon_ms` is set in batches that need one and have none."""
        self._table = keys.table
        self._judge = judging.RecordJudge(keys.latest_offset, now_ms)
        self._rebuilder = rebuilding.BatchRebuilder(
            memoryview(array("q", sorted(last_data_offsets))), end_offset, delete_horizon_ms
        )

    @property
    def records_read(self) -> int:
        return self._judge.records_read

    @property
    def records_kept(self) -> int:
        return self._judge.records_kept

    @property
    def records_without_key(self) -> int:
        return self._judge.records_without_key

    def take(self) -> memoryview:
        """Return the batches that stay, of those filtered since the last call. They are valid until the next ones are
        filtered, which overwrite them."""
        return self._rebuilder.take()

    def filter_plain(self, data: Octets, start: int, end: int) -> int:
        """Filter the whole batches in `data[start:end]`, up to one that is not plain. Returns its position."""
        judge = self._judge
        position = judge.collect_plain(data, start, end)
        self._settle(data, data, position)
        self._rebuilder.add_plain(data, start, position, judge.stays, judge.facts)
        return position

    def filter_batch(self, data: Octets, position: int, header: BatchHeader, fate: BatchFate) -> None:
        """Filter the one batch at `position`."""
        judge = self._judge
        if header.codec is not Codec.NONE and header.count and not fate.drops_records:
            self._filter_compressed(data, position, header)
            return
        judge.collect_batch(data, position, fate.drops_records)
        self._settle(data, data, position)
        self._rebuilder.add_batch(data, position, judge.stays, judge.facts, fate.ends_nothing, fate.keeps_empty)

    def _settle(self, records: Octets, data: Octets, position: int) -> None:
        """Decide about the collected records by the offsets of their keys in the map."""
        judge = self._judge
        if judge.is_damaged:
            raise _unreadable(data, position)
        self._table.look_up(records, judge.lookup_keys, judge.lookup_offsets, judge.lookup_count)
        judge.settle()

    def _filter_compressed(self, data: Octets, position: int, header: BatchHeader) -> None:
        judge, rebuilder = self._judge, self._rebuilder
        held = self._judge_compressed(data, position, header)
        if rebuilder.begin(data, position, judge.facts):
            again = record_pieces(data, position, header) if held is None else held
            kept = (rebuilder.copy(records, judge.stays) for records in again)
            rebuilder.put_rebuilt(data, position, b"".join(deflate(header.codec, kept)))

    def _judge_compressed(self, data: Octets, position: int, header: BatchHeader) -> list[Octets] | None:
        """Decide about the records of a compressed batch. Returns the inflated records, if they are few enough to
        keep."""
        judge = self._judge
        if not 0 < header.count <= INFLATED_BYTES_LIMIT // SMALLEST_RECORD_SIZE:
            raise _unreadable(data, position)
        judge.begin(data, position)
        held: list[Octets] = []
        held_bytes = 0
        for records in record_pieces(data, position, header):
            judge.collect(records)
            self._settle(records, data, position)
            held_bytes += len(records)
            if held_bytes <= _HELD_BYTES:
                held.append(records)
            else:
                held.clear()
        if not judge.finish():
            raise _unreadable(data, position)
        return held if held_bytes <= _HELD_BYTES else None


def _unreadable(data: Octets, position: int) -> MalformedBytes:
    return unreadable(int.from_bytes(data[position : position + 8], "big", signed=True))
