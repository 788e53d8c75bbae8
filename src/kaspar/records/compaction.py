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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaspar.base.compiled import load
from kaspar.base.errors import MalformedBytes
from kaspar.records.batch import BatchHeader
from kaspar.records.codec import Codec, Octets
from kaspar.records.deflate import deflate
from kaspar.records.inflate import INFLATED_BYTES_LIMIT
from kaspar.records.reader import record_pieces, unreadable

if TYPE_CHECKING:
    from kaspar.records import compaction_core as core
    from kaspar.records import judging_core, rebuilding_core
else:
    core = load("kaspar.records.compaction_core")
    judging_core = load("kaspar.records.judging_core")
    rebuilding_core = load("kaspar.records.rebuilding_core")

__all__ = [
    "BatchFate",
    "BatchFilter",
    "IndexPoints",
    "KeyMap",
    "core",
    "judging_core",
    "rebuilding_core",
    "whole_batches",
]

whole_batches = rebuilding_core.whole_batches
IndexPoints = rebuilding_core.IndexPoints

SLOT_BYTES = 24  # as many as in Kafka, so that log.cleaner.dedupe.buffer.size means the same
_SMALLEST_RECORD_SIZE = 7

# A batch that inflates to more is inflated a second time when it has to be rebuilt, so that a compression bomb takes
# time and not memory.
_HELD_BYTES = 8 * 1024 * 1024


class KeyMap:
    """The last offset of each key, in one block of memory, of which no more is used than the most keys so far needed.

    `latest_offset` is that of the last record or batch that was mapped: of everything before it, from where the filling
    began, the map knows every key.
    """

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self._slot_count = memory_bytes // SLOT_BYTES
        self.capacity = int(self._slot_count * load_factor)
        if self.capacity < 1:
            raise ValueError(f"{memory_bytes} bytes are too few for the hash and offset of a single key")
        self._slots = memoryview(mmap.mmap(-1, self._slot_count * SLOT_BYTES)).cast("Q")
        self._begin(self._slot_count, self.capacity)

    def clear(self, most_keys: int | None = None) -> None:
        """Forget every key, and hash the next ones in another way. There will be no more than `most_keys`, if that is
        known: a small table is a fast one, and leaves memory alone."""
        # Wiped rather than given back: the system takes long to take it, and nobody else could run meanwhile.
        self.table.wipe()
        if most_keys is not None and 2 * most_keys < self.capacity:
            self._begin(2 * most_keys + 1, 2 * most_keys + 1)
        else:
            self._begin(self._slot_count, self.capacity)

    def _begin(self, slot_count: int, capacity: int) -> None:
        slots = self._slots[: slot_count * core.SLOT_WORDS]
        self.table = core.KeyTable(slots, capacity, (secrets.randbits(64), secrets.randbits(64)))
        self._collector = judging_core.KeyCollector()
        self.latest_offset = -1
        self.is_full = False
        """A key came that had no room. What was mapped before it stands."""

    def __len__(self) -> int:
        return self.table.count

    @property
    def records_read(self) -> int:
        return self._collector.records_read

    def put(self, key: bytes, offset: int) -> bool:
        """False if the key is new and no more fit."""
        return self.table.put(key, offset)

    def get(self, key: bytes) -> int:
        """The last offset of the key; -1 if it is not known."""
        return self.table.get(key)

    def map_plain(self, data: Octets, start: int, end: int, first_offset: int, end_offset: int) -> int:
        """Map the records from `first_offset` on of the whole batches in `data[start:end]`, up to a batch that has to
        be judged or is not below `end_offset`: where that one begins. If the map gets full, that means nothing."""
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
        """False if the map is full."""
        collector = self._collector
        taken = self.table.put_all(data, collector.keys, collector.offsets, collector.count)
        if taken:
            self.latest_offset = collector.offsets[taken - 1]
        self.is_full = taken < collector.count
        return not self.is_full

    def skip_batch(self, header: BatchHeader, first_offset: int) -> None:
        """A batch of which no record is mapped: it was aborted, or is no data."""
        if header.last_offset >= first_offset:
            self.latest_offset = header.last_offset


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
        self, keys: KeyMap, last_data_offsets: Iterable[int], end_offset: int, now_ms: int, delete_horizon_ms: int
    ) -> None:
        """`last_data_offsets`: of the last batch of each producer; that one, and the batch that ends before
        `end_offset`, stay even if they are empty. What has a delete horizon goes if `now_ms` has reached it;
        `delete_horizon_ms` is the one that batches get which have none and need one."""
        self._table = keys.table
        self._judge = judging_core.RecordJudge(keys.latest_offset, now_ms)
        self._rebuilder = rebuilding_core.BatchRebuilder(
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
        """The batches that stay, of those that were filtered since the last time. To be used before the next ones are
        filtered, which take their place."""
        return self._rebuilder.take()

    def filter_plain(self, data: Octets, start: int, end: int) -> int:
        """Filter the whole batches in `data[start:end]`, up to one that has to be judged: where that one begins."""
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
        """Have the map answer for the keys of the records that were collected."""
        judge = self._judge
        if judge.is_damaged:
            raise _unreadable(data, position)
        self._table.look_up(records, judge.asked, judge.answers, judge.asked_count)
        judge.settle()

    def _filter_compressed(self, data: Octets, position: int, header: BatchHeader) -> None:
        judge, rebuilder = self._judge, self._rebuilder
        held = self._judge_compressed(data, position, header)
        if rebuilder.begin(data, position, judge.facts):
            again = record_pieces(data, position, header) if held is None else held
            kept = (rebuilder.copy(records, judge.stays) for records in again)
            rebuilder.put_rebuilt(data, position, b"".join(deflate(header.codec, kept)))

    def _judge_compressed(self, data: Octets, position: int, header: BatchHeader) -> list[Octets] | None:
        """The inflated records, if they are few enough to be held."""
        judge = self._judge
        if not 0 < header.count <= INFLATED_BYTES_LIMIT // _SMALLEST_RECORD_SIZE:
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
