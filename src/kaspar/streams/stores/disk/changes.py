"""Applies changes to a partition in LMDB. The caller holds the partition's lock.

After every transaction, the state is that of the changelogs up to its ends. A crash between transactions therefore
requires no repair: the rest is read from the changelogs, starting at these ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kaspar.base.log import get_log
from kaspar.records import Record
from kaspar.streams.stores.changelog import ChangelogReader, ChangelogTruncated, meta_of
from kaspar.streams.stores.disk.deltas import Delta, same_version
from kaspar.streams.stores.disk.environment import Environment, StoredState
from kaspar.streams.stores.disk.rows import MAX_PLAIN_SIZE, lmdb_bounds, lmdb_key, lmdb_row, store_prefix, store_row
from kaspar.streams.stores.spec import StoreSpec

if TYPE_CHECKING:
    import lmdb

    Transaction = lmdb.Transaction[bytes]

_MAX_AGE_S = 12 * 60 * 60
"""State that was not written for longer is rebuilt instead of caught up: compaction removes tombstones after
delete.retention.ms, a day by default, and without them deleted keys would remain."""

_log = get_log(__name__)


def apply_delta(environment: Environment, delta: Delta, specs: Iterable[StoreSpec]) -> bool:
    """Apply a delta, unless it is already applied. Returns False if it does not start at the current version."""
    parent, ends = delta.versions.parent, delta.versions.ends
    with environment.writing() as transaction:
        writer = _Writer(environment, transaction)
        present = {name: writer.ends.get(name, 0) for name in parent.keys() | ends.keys()}
        if same_version(present, ends):
            return True
        if not same_version(present, parent):
            return False
        for name, changed in delta.stores.items():
            for first, last in changed.deleted_ranges:
                writer.delete_range(name, first, last)
            writer.put(name, changed.changes)
        writer.ends |= ends
        writer.layouts |= {spec.name: spec.layout for spec in specs}
        writer.grow(delta.meta)
        writer.save()
        return True


def catch_up(
    environment: Environment,
    partition: int,
    specs: Iterable[StoreSpec],
    wanted: Mapping[str, int],
    reader: ChangelogReader,
) -> None:
    """Read the changelogs from the current version to the wanted one; from the beginning if the current one is ahead.

    A store without a changelog is cleared if it is not at the wanted version.
    """
    specs = tuple(specs)
    is_stale = environment.seconds_since_write() > _MAX_AGE_S
    ends = _prepare(environment, specs, None if is_stale else wanted)
    try:
        _read_changelogs(environment, partition, specs, ends, wanted, reader)
    except ChangelogTruncated as truncated:
        _log.info("a changelog is read from its beginning", directory=environment.directory, reason=truncated)
        _read_changelogs(environment, partition, specs, _prepare(environment, specs, None), wanted, reader)
    with environment.writing() as transaction:
        writer = _Writer(environment, transaction)
        for spec in specs:
            first_live = spec.kind.first_live_key(spec, writer.meta.get(spec.clock_name, -1))
            if first_live is not None:
                writer.delete_range(spec.name, None, first_live)
        writer.ends |= wanted
        writer.save()


def _prepare(environment: Environment, specs: Iterable[StoreSpec], wanted: Mapping[str, int] | None) -> dict[str, int]:
    """Clear state that cannot be caught up to the wanted version, or all state if it is None. Returns the remaining
    ends."""
    with environment.writing() as transaction:
        writer = _Writer(environment, transaction)
        if wanted is None or any(writer.ends.get(name, 0) > end for name, end in wanted.items()):
            environment.clear(transaction)
            writer = _Writer(environment, transaction)
        for spec in specs:
            end = writer.ends.get(spec.name, 0)
            is_lost = not spec.is_logged and end != (wanted or {}).get(spec.name, -1)
            if is_lost and end:
                _log.warning("a store without a changelog has lost its entries", store=spec.name)
            if is_lost or writer.layouts.get(spec.name, spec.layout) != spec.layout:
                writer.delete_range(spec.name, None, None)
                writer.ends[spec.name] = 0
            writer.layouts[spec.name] = spec.layout
        writer.save()
        return writer.ends


def _read_changelogs(
    environment: Environment,
    partition: int,
    specs: Iterable[StoreSpec],
    ends: Mapping[str, int],
    wanted: Mapping[str, int],
    reader: ChangelogReader,
) -> None:
    for spec in specs:
        first, last = ends.get(spec.name, 0), wanted.get(spec.name, 0)
        if spec.is_logged and first < last:
            for records in reader.read(spec.name, partition, first, last):
                if records:
                    _restore(environment, spec, records)


def _restore(environment: Environment, spec: StoreSpec, records: Sequence[Record]) -> None:
    changes: dict[bytes, bytes | None] = {}
    meta: dict[str, int] = {}
    time = -1
    from_changelog, stream_time = spec.from_changelog, spec.kind.stream_time
    for timestamp, key, value, headers, _ in records:
        if key is not None:
            store_key, stored = from_changelog(key, value, timestamp)
            changes[store_key] = stored
            time = max(time, stream_time(spec, store_key))
        if headers:
            meta = grown(meta, meta_of(headers))
    if time >= 0:
        meta = grown(meta, {spec.clock_name: time})
    with environment.writing() as transaction:
        writer = _Writer(environment, transaction)
        writer.put(spec.name, changes)
        writer.ends[spec.name] = records[-1].offset + 1
        writer.grow(meta)
        writer.save()


def grown(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The maximum for each name."""
    return {name: max(one.get(name, -1), other.get(name, -1)) for name in one.keys() | other.keys()}


class _Writer:
    """A write transaction, and the StoredState after it."""

    def __init__(self, environment: Environment, transaction: "Transaction") -> None:
        state = environment.state(transaction)
        self.ends, self.meta = dict(state.ends), dict(state.meta)
        self.layouts = dict(state.layouts)
        self._numbers = dict(state.numbers)
        self._environment = environment
        self._transaction = transaction

    def put(self, store: str, changes: Mapping[bytes, bytes | None]) -> None:
        prefix = self._prefix(store)
        rows = [
            (prefix + key, value) if len(key) <= MAX_PLAIN_SIZE else lmdb_row(prefix, key, value)
            for key, value in changes.items()
            if value is not None
        ]
        rows.sort()  # so that neighbouring rows are written to the same page
        with self._transaction.cursor() as cursor:
            cursor.putmulti(rows)
        for key, value in changes.items():
            if value is None:
                self._transaction.delete(lmdb_key(prefix, key))

    def delete_range(self, store: str, first: bytes | None, last: bytes | None) -> None:
        low, high, _ = lmdb_bounds(self._prefix(store), first, last)
        with self._transaction.cursor() as cursor:
            is_placed = cursor.set_range(low)
            while is_placed and low <= cursor.key() < high:  # after the last row, key() is empty
                key = store_row(*cursor.item())[0]
                if (first is None or key >= first) and (last is None or key < last):
                    is_placed = cursor.delete()
                else:
                    is_placed = cursor.next()

    def grow(self, meta: Mapping[str, int]) -> None:
        self.meta = grown(self.meta, meta)

    def save(self) -> None:
        self._environment.save_state(self._transaction, StoredState(self.ends, self.meta, self._numbers, self.layouts))

    def _prefix(self, store: str) -> bytes:
        number = self._numbers.setdefault(store, max(self._numbers.values(), default=0) + 1)
        return store_prefix(number)
