"""Ordered maps of bytes, on which every store is built.

A ByteStore is read and written by one task. An OverlayStore reads through to an immutable snapshot, and collects the
task's changes: `changes`, the last value of each key that was put (None if it was deleted), and `deleted_ranges`. To
apply them to the snapshot's state, delete the ranges first.

A deleted range is not written to the changelog key by key. Therefore `delete_range` may only delete entries whose
deletion follows from the rest of the state, such as expired windows.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Protocol, TypeAlias

from sortedcontainers import SortedList

Row: TypeAlias = tuple[bytes, bytes]
KeyRange: TypeAlias = tuple[bytes | None, bytes | None]
"""From the first key (inclusive) to the last one (exclusive); None means no bound."""


class Snapshot(Protocol):
    """An immutable map, ordered by key."""

    def get(self, key: bytes, /) -> bytes | None: ...

    def range(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        """The rows from the key `first` (inclusive) to `last` (exclusive); None means no bound."""

    def approximate_num_entries(self) -> int: ...


class ByteStore(Snapshot, Protocol):
    """A mutable map. An iterator returns the rows that existed when `range` was called."""

    def put(self, key: bytes, value: bytes | None, /) -> None:
        """Set the value of a key; None deletes the key."""

    def delete_range(self, first: bytes | None, last: bytes | None) -> None: ...

    def first_row(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Row | None:
        """The first row that `range` would return, at the cost of one lookup."""


class OverlayStore:
    """A ByteStore of changes over a snapshot. Without a snapshot it is a map in memory, and deletions are not recorded.

    `get` and `put` are methods of a dict for speed, since they are called for every record.
    """

    get: Callable[[bytes], bytes | None]
    put: Callable[[bytes, bytes | None], None]
    changes: dict[bytes, bytes | None]

    def __init__(self, base: Snapshot | None) -> None:
        self.deleted_ranges: list[KeyRange] = []
        self._base = base
        self._sorted: SortedList[bytes] = SortedList()  # the keys of `changes` up to the last scan
        if base is None:
            self.changes = {}
            self.get = self.changes.get
            self.put = self._put_in_memory
        else:
            self.changes = _ReadThrough(base.get, self.deleted_ranges)
            self.get = self.changes.__getitem__
            self.put = self.changes.__setitem__

    def range(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        changes = self.changes
        changed = [(key, changes[key]) for key in self._sorted_keys().irange(first, last, (True, False), reverse)]
        if self._base is None:
            return _present(changed)
        rows = self._base.range(first, last, reverse=reverse)
        if self.deleted_ranges:
            rows = _without(rows, tuple(self.deleted_ranges))
        return _merged(rows, changed, reverse) if changed else rows

    def first_row(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Row | None:
        changes = self.changes
        changed = ((key, changes[key]) for key in self._sorted_keys().irange(first, last, (True, False), reverse))
        if self._base is None:
            return next(_present(changed), None)
        rows = self._base.range(first, last, reverse=reverse)
        if self.deleted_ranges:
            rows = _without(rows, tuple(self.deleted_ranges))
        return next(_merged(rows, changed, reverse), None)

    def delete_range(self, first: bytes | None, last: bytes | None) -> None:
        if self._sorted:
            keys = self._sorted_keys()
            start = 0 if first is None else keys.bisect_left(first)
            stop = len(keys) if last is None else keys.bisect_left(last)
            deleted = keys[start:stop]
            del keys[start:stop]
        else:  # avoids sorting a store that is never scanned
            deleted = [key for key in self.changes if _is_within(key, first, last)]
        for key in deleted:
            del self.changes[key]
        if self._base is not None:
            self.deleted_ranges[:] = [each for each in self.deleted_ranges if not _contains((first, last), each)]
            self.deleted_ranges.append((first, last))

    def approximate_num_entries(self) -> int:
        """A changed key that is also in the snapshot counts twice, as in RocksDB's estimate."""
        return len(self.changes) + (0 if self._base is None else self._base.approximate_num_entries())

    def _put_in_memory(self, key: bytes, value: bytes | None) -> None:
        if value is not None:
            self.changes[key] = value
        elif key in self.changes:
            if self._sorted:
                self._sorted_keys().remove(key)
            del self.changes[key]

    def _sorted_keys(self) -> SortedList[bytes]:
        """All keys of `changes`, sorted. A dict keeps its keys in insertion order, so the new ones come last."""
        changes, keys = self.changes, self._sorted
        new = len(changes) - len(keys)
        if new == 1:
            keys.add(next(reversed(changes)))
        elif new:
            keys.update(islice(reversed(changes), new))
        return keys


class _ReadThrough(dict[bytes, bytes | None]):
    """A dict of changes whose `[]` looks up missing keys in the snapshot."""

    __slots__ = ("_deleted_ranges", "_read")

    def __init__(self, read: Callable[[bytes], bytes | None], deleted_ranges: list[KeyRange]) -> None:
        super().__init__()
        self._read = read
        self._deleted_ranges = deleted_ranges

    def __missing__(self, key: bytes) -> bytes | None:
        if self._deleted_ranges and any(_is_within(key, *each) for each in self._deleted_ranges):
            return None
        return self._read(key)


def _is_within(key: bytes, first: bytes | None, last: bytes | None) -> bool:
    return (first is None or key >= first) and (last is None or key < last)


def _contains(outer: KeyRange, inner: KeyRange) -> bool:
    return (outer[0] is None or (inner[0] is not None and outer[0] <= inner[0])) and (
        outer[1] is None or (inner[1] is not None and outer[1] >= inner[1])
    )


def _present(changed: Iterable[tuple[bytes, bytes | None]]) -> Iterator[Row]:
    return ((key, value) for key, value in changed if value is not None)


def _without(rows: Iterator[Row], deleted: tuple[KeyRange, ...]) -> Iterator[Row]:
    return (row for row in rows if not any(_is_within(row[0], *each) for each in deleted))


def _merged(rows: Iterator[Row], changed: Iterable[tuple[bytes, bytes | None]], reverse: bool) -> Iterator[Row]:
    """Merge rows and changes, which have the same order. A change replaces the row with the same key."""
    changes = iter(changed)
    change = next(changes, None)
    for row in rows:
        key = row[0]
        while change is not None and change[0] != key and (change[0] < key) is not reverse:
            if change[1] is not None:
                yield change[0], change[1]
            change = next(changes, None)
        if change is None or change[0] != key:
            yield row
        else:
            if change[1] is not None:
                yield key, change[1]
            change = next(changes, None)
    if change is not None:
        yield from _present(chain((change,), changes))
