"""The store of records of a left or outer stream join that have no partner yet. Both sides of the join share it.

A record waits here until a partner arrives or its window closes. Records with closed windows are emitted in the order
of timestamp, side (right before left) and key, as in Kafka (KStreamKStreamJoin, TimestampedKeyAndJoinSide). Records
with the same side, key and timestamp form one entry. Keys in the ByteStore start with the side, then the timestamp, so
that the closed entries of a side are one range, although the windows of the two sides may close at different times.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import ByteStore, Row
from kaspar.streams.stores.kinds import KEY_VALUE
from kaspar.streams.stores.spec import ChangelogRecord, StoreContext, StoreKind, StoreSpec

NEVER = 1 << 62

_LEFT, _RIGHT = b"\x01", b"\x00"  # as in Kafka's TimestampedKeyAndJoinSideSerializer
_TIME = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_KEY_START = 1 + _TIME.size


class WaitingRecord(NamedTuple):
    is_left: bool
    key: Any
    value: Any
    timestamp: int


class EitherSide:
    """The serde of a pair: whether a value belongs to the left side, and the value (Kafka's LeftOrRightValueSerde)."""

    def __init__(self, left: Serde[Any] | None, right: Serde[Any] | None) -> None:
        self._left = left
        self._right = right

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> "EitherSide":
        return EitherSide(self._left or value_serde, self._right or value_serde)

    def serialize(self, topic: str, value: tuple[bool, Any] | None) -> bytes | None:
        if value is None:
            return None
        data = self._of(value[0]).serialize(topic, value[1])
        return None if data is None else (_LEFT if value[0] else _RIGHT) + data

    def deserialize(self, topic: str, data: bytes | None) -> tuple[bool, Any] | None:
        if data is None:
            return None
        is_left = data[:1] == _LEFT
        return is_left, self._of(is_left).deserialize(topic, data[1:])

    def _of(self, is_left: bool) -> Serde[Any]:
        serde = self._left if is_left else self._right
        assert serde is not None, "with_defaults() comes first"
        return serde


class WaitingRecords:
    """The store. A join uses `earliest` to decide whether to search for closed windows at all. As in Kafka, it is the
    time of the entry at which the last search ended, so a closed window may be found a bit late. It is not kept between
    micro-batches."""

    def __init__(
        self, name: str, store: ByteStore, topic: str, key_serde: Serde[Any], value_serde: Serde[tuple[bool, Any]]
    ) -> None:
        self.name = name
        self._store = store
        self._topic = topic
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._first = {_LEFT: 0, _RIGHT: 0}  # no entry of the side is earlier
        first = [row for side in (_LEFT, _RIGHT) if (row := store.first_row(side, _behind(side)))]
        self.earliest = min(map(_time, first), default=NEVER)

    def add(self, record: WaitingRecord) -> None:
        store_key = self._store_key(record.is_left, record.key, record.timestamp)
        data = self._value_serde.serialize(self._topic, (record.is_left, record.value))
        if data is None:
            return
        self._store.put(store_key, (self._store.get(store_key) or b"") + _SIZE.pack(len(data)) + data)
        self.earliest = min(self.earliest, record.timestamp)
        side = store_key[:1]
        self._first[side] = min(self._first[side], record.timestamp)

    def remove(self, *, is_left: bool, key: Any, timestamp: int) -> None:
        """Remove all records of this side, key and timestamp, if there are any: they have a partner."""
        store_key = self._store_key(is_left, key, timestamp)
        if self._store.get(store_key) is not None:
            self._store.put(store_key, None)

    def take_closed(self, left_before: int, right_before: int) -> Iterator[WaitingRecord]:
        """Remove and return the records of the left and of the right side that are earlier than these times."""
        closed = [*self._rows(_LEFT, left_before), *self._rows(_RIGHT, right_before)]
        self.earliest = self._end_of_look(left_before, right_before)
        for store_key, _ in closed:
            self._store.put(store_key, None)
        return (record for row in sorted(closed, key=_order) for record in self._records(row))

    def all(self) -> Iterator[WaitingRecord]:
        """All records, in the order in which they would be emitted."""
        return (record for row in sorted(self._store.range(None, None), key=_order) for record in self._records(row))

    def _store_key(self, is_left: bool, key: Any, timestamp: int) -> bytes:
        raw_key = self._key_serde.serialize(self._topic, key)
        assert raw_key is not None, "records without key have no partner, and do not wait for one"
        return (_LEFT if is_left else _RIGHT) + _TIME.pack(timestamp) + raw_key

    def _rows(self, side: bytes, before: int) -> list[Row]:
        start = self._first[side]
        if before <= start:
            return []
        self._first[side] = before  # so that a task does not scan its own deletions again
        return list(self._store.range(_at(side, start), _at(side, before)))

    def _end_of_look(self, left_before: int, right_before: int) -> int:
        """The time of the entry at which Kafka's loop ends: the one after the first open entries of both sides, or the
        last entry."""
        first_row = self._store.first_row
        left = first_row(_at(_LEFT, max(0, left_before)), _behind(_LEFT))
        right = first_row(_at(_RIGHT, max(0, right_before)), _behind(_RIGHT))
        if left is None or right is None:
            last = (first_row(side, _behind(side), reverse=True) for side in (_LEFT, _RIGHT))
            return max((_time(row) for row in last if row), default=NEVER)
        if _order(left) > _order(right):
            second, others = left, first_row(_at(_RIGHT, _time(left) + 1), _behind(_RIGHT))
        else:
            second, others = right, first_row(_at(_LEFT, _time(right)), _behind(_LEFT))
        if _size_of_first(second[1]) < len(second[1]):
            return _time(second)  # the loop ends with the next record of the same entry
        of_same_side = first_row(second[0] + b"\x00", _behind(second[0][:1]))
        return min((_time(row) for row in (others, of_same_side) if row), default=_time(second))

    def _records(self, row: Row) -> Iterator[WaitingRecord]:
        store_key, data = row
        key = self._key_serde.deserialize(self._topic, store_key[_KEY_START:])
        timestamp, start = _time(row), 0
        while start < len(data):
            (size,) = _SIZE.unpack_from(data, start)
            start += _SIZE.size + size
            pair = self._value_serde.deserialize(self._topic, data[start - size : start])
            if pair is not None:
                yield WaitingRecord(pair[0], key, pair[1], timestamp)


@dataclass(frozen=True, slots=True)
class _WaitingRecordsKind:
    """The kind of this store. Its changelog is that of a key-value store."""

    def open(self, spec: StoreSpec, store: ByteStore, context: StoreContext) -> WaitingRecords:
        topic = spec.changelog_topic(context.application_id)
        return WaitingRecords(spec.name, store, topic, *spec.serdes)

    def layout(self, spec: StoreSpec) -> str:
        return "waiting-records"

    def changelog_config(self, spec: StoreSpec) -> dict[str, str]:
        return KEY_VALUE.changelog_config(spec)

    def to_changelog(self, spec: StoreSpec, key: bytes, value: bytes | None) -> ChangelogRecord:
        return KEY_VALUE.to_changelog(spec, key, value)

    def from_changelog(
        self, spec: StoreSpec, key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        return KEY_VALUE.from_changelog(spec, key, value, timestamp)

    def stream_time(self, spec: StoreSpec, key: bytes) -> int:
        return KEY_VALUE.stream_time(spec, key)

    def first_live_key(self, spec: StoreSpec, now: int) -> bytes | None:
        return KEY_VALUE.first_live_key(spec, now)


WAITING_RECORDS: StoreKind = _WaitingRecordsKind()


def _at(side: bytes, time: int) -> bytes:
    """The first key of a side at a time."""
    return side + _TIME.pack(time)


def _behind(side: bytes) -> bytes:
    return bytes((side[0] + 1,))


def _time(row: Row) -> int:
    time: int = _TIME.unpack_from(row[0], 1)[0]
    return time


def _size_of_first(data: bytes) -> int:
    size: int = _SIZE.unpack_from(data)[0]
    return _SIZE.size + size


def _order(row: Row) -> bytes:
    store_key = row[0]
    return store_key[1:_KEY_START] + store_key[:1] + store_key[_KEY_START:]
