"""Maps every key of the dirty part of a log to its last offset, as far as the map has room (Kafka's buildOffsetMap).

Neither records of aborted transactions, which replace nothing, nor control records, which have no keys in this sense,
are mapped. Nothing at or above `end` is read, because its transactions may still be open.
"""

from contextlib import closing
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.records import read_header
from kaspar.records.compaction import KeyMap
from kaspar.storage.cleaning.chunks import Chunk, read_chunks
from kaspar.storage.cleaning.errors import DamagedSegment
from kaspar.storage.cleaning.throttle import Pace
from kaspar.storage.cleaning.transactions import CleanedTransactions, aborted_between, control_type_of
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.log import Log
from kaspar.storage.segments.segment import Segment


class KeyScan(NamedTuple):
    records_read: int
    bytes_read: int


def fill(keys: KeyMap, owner: Log, begin: int, end: int, pace: Pace) -> KeyScan:
    """Clear the map and fill it with the keys from `begin` up to, not including, `end`. Afterwards `keys.latest_offset`
    is the last offset that was mapped: `end - 1`, unless the map is full.
    """
    keys.clear(max(0, end - begin))
    keys.latest_offset = begin - 1
    if end <= begin:
        return KeyScan(0, 0)
    return _Scan(keys, owner, begin, end, pace).run()


class _Scan:
    def __init__(self, keys: KeyMap, owner: Log, begin: int, end: int, pace: Pace) -> None:
        self._keys = keys
        self._owner = owner
        self._begin = begin
        self._end = end
        self._pace = pace
        self._transactions = CleanedTransactions()
        self._bytes_read = 0

    def run(self) -> KeyScan:
        segments = self._owner.segments
        self._transactions.add_aborted(aborted_between(self._owner, self._begin, self._end))
        for segment in segments.all[max(0, segments.slot_of(self._begin)) :]:
            if segment.base_offset >= self._end or self._keys.is_full:
                break
            self._scan(segment)
        if not self._keys.is_full:
            # An earlier cleaning may have removed the batches at the last offsets.
            self._keys.latest_offset = self._end - 1
        return KeyScan(self._keys.records_read, self._bytes_read)

    def _scan(self, segment: Segment) -> None:
        with closing(read_chunks(self._owner, segment, self._pace, from_offset=self._begin)) as chunks:
            for chunk in chunks:
                self._bytes_read += chunk.end
                try:
                    if not self._map(chunk):
                        return
                except MalformedBytes as error:
                    raise DamagedSegment(segment.path(LOG), chunk.position, str(error)) from error

    def _map(self, chunk: Chunk) -> bool:
        """Map the keys of a chunk. Returns False if nothing more is to be mapped in this segment."""
        keys, data = self._keys, chunk.data
        position = 0
        while True:
            position = keys.map_plain(data, position, chunk.end, self._begin, self._end)
            if keys.is_full or position == chunk.end:
                return not keys.is_full
            header = read_header(data, position)
            if header.base_offset >= self._end:
                return False
            if header.is_control:
                self._transactions.has_nothing_to_end(header, control_type_of(data, position, header))
                keys.skip_batch(header, self._begin)
            elif self._transactions.is_aborted(header):
                keys.skip_batch(header, self._begin)
            elif not keys.map_batch(data, position, header, self._begin):
                return False
            position += header.size
