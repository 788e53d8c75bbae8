"""Keys of any length in LMDB, and the snapshot of one store."""

import random
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from kaspar.streams.stores.byte_store import Row
from kaspar.streams.stores.disk.rows import MAX_SIZE, lmdb_row, store_prefix, store_row
from kaspar.streams.stores.disk.snapshot import LmdbSnapshot

ONE, TWO, THREE = store_prefix(1), store_prefix(2), store_prefix(3)
STEM = b"s" * 493


def refuse(error: lmdb.Error) -> Exception:
    return AssertionError(error)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[lmdb.Environment]:
    with lmdb.open(str(tmp_path), map_size=1 << 24, sync=False) as environment:
        yield environment


def keys_of_all_sizes() -> list[bytes]:
    rng = random.Random(5)
    keys = [b"", b"\x00", b"\x00\x00", b"a", b"\xff", b"\xff\xff", STEM[:-1], STEM, STEM + b"\x00", STEM + b"\xff" * 15]
    keys += [STEM + rng.randbytes(size) for size in (1, 2, 15, 16, 17, 18, 100, 1000, 5000) for _ in range(4)]
    keys += [b"t" * size for size in range(490, 515)]
    return sorted(set(keys))


def write(environment: lmdb.Environment, prefix: bytes, keys: list[bytes]) -> list[Row]:
    rows = [(key, b"value of " + key[-3:]) for key in keys]
    with environment.begin(write=True) as transaction:
        for key, value in rows:
            transaction.put(*lmdb_row(prefix, key, value))
    return rows


@pytest.mark.parametrize("size", [0, 1, 493, 508, 509, 510, 511, 4000])
def test_a_key_of_any_size_fits_and_is_read_back(size: int) -> None:
    key = bytes(range(256)) * (size // 256) + b"k" * (size % 256)
    stored_key, data = lmdb_row(TWO, key, b"value")
    assert 0 < len(stored_key) <= MAX_SIZE
    assert store_row(stored_key, data) == (key, b"value")


def test_long_keys_that_differ_at_the_end_are_kept_apart() -> None:
    assert lmdb_row(TWO, STEM * 2 + b"a", b"")[0] != lmdb_row(TWO, STEM * 2 + b"b", b"")[0]


def test_a_snapshot_finds_keys_of_all_sizes(environment: lmdb.Environment) -> None:
    rows = write(environment, TWO, keys_of_all_sizes())
    with environment.begin() as transaction:
        snapshot = LmdbSnapshot(transaction, TWO, refuse)
        assert [snapshot.get(key) for key, _ in rows] == [value for _, value in rows]
        assert snapshot.get(STEM + b"no such key" * 10) is None
        assert snapshot.approximate_num_entries() == len(rows)


def test_a_snapshot_is_ordered_whatever_the_size_of_the_keys(environment: lmdb.Environment) -> None:
    keys = keys_of_all_sizes()
    rows = write(environment, TWO, keys)
    with environment.begin() as transaction:
        snapshot = LmdbSnapshot(transaction, TWO, refuse)
        assert list(snapshot.range(None, None)) == rows
        assert list(snapshot.range(None, None, reverse=True)) == rows[::-1]
        for first in keys[::3]:
            for last in keys[1::3]:
                expected = [row for row in rows if first <= row[0] < last]
                assert list(snapshot.range(first, last)) == expected
                assert list(snapshot.range(first, last, reverse=True)) == expected[::-1]


def test_stores_are_kept_apart(environment: lmdb.Environment) -> None:
    keys = [b"", b"\x00", b"a", b"\xff" * 600]
    for prefix in (ONE, TWO, THREE):
        write(environment, prefix, keys)
    with environment.begin() as transaction:
        snapshot = LmdbSnapshot(transaction, TWO, refuse)
        assert [key for key, _ in snapshot.range(None, None)] == keys
        assert [key for key, _ in snapshot.range(None, None, reverse=True)] == keys[::-1]


def test_a_snapshot_that_finds_damage_reports_it(environment: lmdb.Environment) -> None:
    class Damaged(Exception):
        pass

    transaction = environment.begin()
    snapshot = LmdbSnapshot(transaction, TWO, lambda error: Damaged(error))
    transaction.abort()  # stands for any error of LMDB
    with pytest.raises(Damaged):
        snapshot.get(b"a")
    with pytest.raises(Damaged):
        next(snapshot.range(None, None))
