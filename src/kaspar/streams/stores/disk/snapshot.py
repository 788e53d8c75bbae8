"""One store of a partition in a read transaction: a Snapshot, which any number of processes may have open."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import lmdb

from kaspar.streams.stores.byte_store import Row
from kaspar.streams.stores.disk.rows import (
    MAX_PLAIN_SIZE,
    STEM_SIZE,
    lmdb_bounds,
    lmdb_key,
    store_row,
)

if TYPE_CHECKING:
    Transaction = lmdb.Transaction[bytes]

OnDamage = Callable[[lmdb.Error], Exception]
"""Creates the exception for a task that finds damaged files, and marks these to be discarded."""


class LmdbSnapshot:
    def __init__(self, transaction: "Transaction", prefix: bytes, on_damage: OnDamage) -> None:
        self._transaction = transaction
        self._find = transaction.get
        self._prefix = prefix
        self._on_damage = on_damage

    def get(self, key: bytes) -> bytes | None:
        try:
            if len(key) <= MAX_PLAIN_SIZE:
                return self._find(self._prefix + key)
            stored_key = lmdb_key(self._prefix, key)
            data = self._find(stored_key)
        except lmdb.Error as error:
            raise self._on_damage(error) from error
        return None if data is None else store_row(stored_key, data)[1]

    def range(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        low, high, has_others = lmdb_bounds(self._prefix, first, last)
        rows = _sorted_by_key(self._stored_rows(low, high, reverse), reverse)
        if has_others:
            return (row for row in rows if (first is None or row[0] >= first) and (last is None or row[0] < last))
        return rows

    def approximate_num_entries(self) -> int:
        """The exact number, by counting the rows."""
        low, high, _ = lmdb_bounds(self._prefix, None, None)
        return sum(1 for _ in self._stored_rows(low, high, False))

    def _stored_rows(self, low: bytes, high: bytes, reverse: bool) -> Iterator[Row]:
        try:
            with self._transaction.cursor() as cursor:
                if not reverse:
                    if cursor.set_range(low):
                        for row in cursor.iternext():
                            if row[0] >= high:
                                break
                            yield row
                elif cursor.prev() if cursor.set_range(high) else cursor.last():
                    for row in cursor.iterprev():
                        if row[0] < low:
                            break
                        yield row
        except lmdb.Error as error:
            raise self._on_damage(error) from error


def _sorted_by_key(rows: Iterable[Row], reverse: bool) -> Iterator[Row]:
    """Sort the rows with truncated keys, which may be out of order in LMDB."""
    stem = b""
    unsorted: list[Row] = []
    for stored_key, data in rows:
        if len(stored_key) <= STEM_SIZE:
            if unsorted:
                yield from sorted(unsorted, reverse=reverse)
                unsorted = []
            yield store_row(stored_key, data)
            continue
        if unsorted and stored_key[:STEM_SIZE] != stem:
            yield from sorted(unsorted, reverse=reverse)
            unsorted = []
        stem = stored_key[:STEM_SIZE]
        unsorted.append(store_row(stored_key, data))
    yield from sorted(unsorted, reverse=reverse)
