"""Learns the last offset of every key of the dirty part of a log, as far as the map has room.

Records of aborted transactions are nobody's last value, and control records have no keys that mean anything: neither
is mapped. Nothing at or behind `end` is looked at, for it may not be decided yet.
"""

from contextlib import closing
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.records import read_header
from kaspar.records.compaction import KeyMap
from kaspar.storage.cleaning.errors import DamagedSegment
from kaspar.storage.cleaning.pieces import Piece, pieces
from kaspar.storage.cleaning.throttle import Pace
from kaspar.storage.cleaning.transactions import CleanedTransactions, aborted_between, control_type_of
from kaspar.storage.file_names import LOG
from kaspar.storage.log import Log
from kaspar.storage.segment import Segment


class KeyScan(NamedTuple):
    records_read: int
    bytes_read: int


def fill(keys: KeyMap, owner: Log, begin: int, end: int, pace: Pace) -> KeyScan:
    """Forget what the map knew and fill it with the keys from `begin` up to, not including, `end`. How far it came says
    `keys.latest_offset`: to `end - 1`, unless it is full.
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
            # There may be no batch any more where the last offsets were.
            self._keys.latest_offset = self._end - 1
        return KeyScan(self._keys.records_read, self._bytes_read)

    def _scan(self, segment: Segment) -> None:
        with closing(pieces(self._owner, segment, self._pace, from_offset=self._begin)) as whole_pieces:
            for piece in whole_pieces:
                self._bytes_read += piece.end
                try:
                    if not self._map(piece):
                        return
                except MalformedBytes as error:
                    raise DamagedSegment(segment.path(LOG), piece.position, str(error)) from error

    def _map(self, piece: Piece) -> bool:
        """False if nothing more is to be mapped, here or in a later piece of the segment."""
        keys, data = self._keys, piece.data
        position = 0
        while True:
            position = keys.map_plain(data, position, piece.end, self._begin, self._end)
            if keys.is_full or position == piece.end:
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
