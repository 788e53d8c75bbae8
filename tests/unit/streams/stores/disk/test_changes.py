"""Deltas are applied to the version that they start from, and once."""

from pathlib import Path

import pytest

from kaspar.streams import serdes
from kaspar.streams.stores import kinds
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.disk.changes import apply_delta
from kaspar.streams.stores.disk.deltas import Delta, delta_of
from kaspar.streams.stores.disk.environment import Environment
from kaspar.streams.stores.disk.opened import open_environment, partition_lock
from kaspar.streams.stores.disk.partition_state import PartitionState
from kaspar.streams.stores.spec import StoreSpec

SPECS = [StoreSpec("s", kinds.KEY_VALUE, serdes.raw(), serdes.raw())]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    with partition_lock(tmp_path):
        return open_environment(tmp_path)


def delta(parent: int, end: int, *, meta: int = 0, **changes: str | None) -> Delta:
    store = OverlayStore(OverlayStore(None))
    for key, value in changes.items():
        store.put(key.encode(), None if value is None else value.encode())
    return delta_of({"s": parent}, {"s": end}, {"time": meta}, {"s": store})


def contents(environment: Environment) -> dict[bytes, bytes]:
    with PartitionState(environment) as state:
        return dict(state.snapshot("s").range(None, None))


def test_a_delta_leads_from_its_parent_to_its_ends(environment: Environment) -> None:
    assert apply_delta(environment, delta(0, 2, a="1", b="2"), SPECS)
    assert apply_delta(environment, delta(2, 4, a=None, c="3"), SPECS)
    assert contents(environment) == {b"b": b"2", b"c": b"3"}
    with PartitionState(environment) as state:
        assert state.ends == {"s": 4}
        assert state.is_at({"s": 4}, SPECS)
        assert not state.is_at({"s": 2}, SPECS)


def test_a_delta_from_another_version_is_not_applied(environment: Environment) -> None:
    assert apply_delta(environment, delta(0, 2, a="1"), SPECS)
    assert not apply_delta(environment, delta(0, 3, a="other"), SPECS)
    assert not apply_delta(environment, delta(3, 5, a="later"), SPECS)
    assert contents(environment) == {b"a": b"1"}


def test_a_delta_that_another_process_has_applied_is_not_applied_again(environment: Environment) -> None:
    assert apply_delta(environment, delta(0, 2, a="1"), SPECS)
    assert apply_delta(environment, delta(0, 2, a="not again"), SPECS)
    assert contents(environment) == {b"a": b"1"}


def test_meta_only_grows(environment: Environment) -> None:
    assert apply_delta(environment, delta(0, 1, meta=7, a="1"), SPECS)
    assert apply_delta(environment, delta(1, 2, meta=5, a="1"), SPECS)
    with PartitionState(environment) as state:
        assert state.meta == {"time": 7}


def test_deleted_ranges_are_deleted_before_changes_are_made(environment: Environment) -> None:
    assert apply_delta(environment, delta(0, 1, a="1", b="2", c="3"), SPECS)
    store = OverlayStore(OverlayStore(None))
    store.put(b"b", b"dropped")
    store.delete_range(None, b"c")
    store.put(b"a", b"new")
    assert apply_delta(environment, delta_of({"s": 1}, {"s": 2}, {}, {"s": store}), SPECS)
    assert contents(environment) == {b"a": b"new", b"c": b"3"}


def test_a_long_range_of_long_keys_is_deleted(environment: Environment) -> None:
    stem = "k" * 600
    assert apply_delta(environment, delta(0, 1, **{stem + letter: letter for letter in "abcde"}), SPECS)  # type: ignore[arg-type]
    store = OverlayStore(OverlayStore(None))
    store.delete_range(f"{stem}b".encode(), f"{stem}d".encode())
    assert apply_delta(environment, delta_of({"s": 1}, {"s": 2}, {}, {"s": store}), SPECS)
    assert sorted(contents(environment).values()) == [b"a", b"d", b"e"]
