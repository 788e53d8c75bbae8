"""Delta files: written whole, found by their versions, removed when they are old or damaged."""

import logging
import os
from pathlib import Path

import pytest

from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.disk.deltas import (
    Delta,
    delta_chain,
    delta_folder,
    delta_of,
    read_delta,
    remove_old_deltas,
    same_version,
    write_delta,
)


def delta(parent: dict[str, int], ends: dict[str, int]) -> Delta:
    store = OverlayStore(OverlayStore(None))
    store.delete_range(None, b"b")
    store.put(b"", b"empty")
    store.put(b"key", None)
    return delta_of(parent, ends, {"task": 5}, {"s": store, "unchanged": OverlayStore(OverlayStore(None))})


def test_a_delta_has_the_changed_stores_only() -> None:
    assert set(delta({}, {"s": 1}).stores) == {"s"}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = delta({"s": 1}, {"s": 2})
    found = read_delta(write_delta(tmp_path, written))
    assert found == written
    assert found is not None
    assert found.stores["s"].deleted_ranges == [(None, b"b")]
    assert found.stores["s"].changes == {b"": b"empty", b"key": None}
    assert found.meta == {"task": 5}


def test_a_chain_leads_from_one_version_to_another(tmp_path: Path) -> None:
    files = [write_delta(tmp_path, delta({"s": end}, {"s": end + 10})) for end in (0, 10, 20)]
    lost = write_delta(tmp_path, delta({"s": 10}, {"s": 25}))
    assert delta_chain(tmp_path, {"s": 0}, {"s": 30}) == files
    assert delta_chain(tmp_path, {}, {"s": 10}) == files[:1]
    assert delta_chain(tmp_path, {"s": 10}, {"s": 20}) == files[1:2]
    assert delta_chain(tmp_path, {"s": 10}, {"s": 25}) == [lost]
    assert delta_chain(tmp_path, {"s": 10}, {"s": 10}) == []


def test_there_is_no_chain_if_a_delta_is_missing(tmp_path: Path) -> None:
    files = [write_delta(tmp_path, delta({"s": end}, {"s": end + 10})) for end in (0, 10, 20)]
    files[1].unlink()
    assert delta_chain(tmp_path, {"s": 0}, {"s": 30}) is None
    assert delta_chain(tmp_path, {"s": 5}, {"s": 30}) is None
    assert delta_chain(tmp_path / "nothing", {"s": 5}, {"s": 30}) is None


def test_a_chain_ends_even_if_files_are_named_in_a_circle(tmp_path: Path) -> None:
    write_delta(tmp_path, delta({"s": 10}, {"s": 20}))
    write_delta(tmp_path, delta({"s": 20}, {"s": 10}))
    assert delta_chain(tmp_path, {"s": 5}, {"s": 20}) is None


def test_a_store_without_records_may_be_missing_from_a_version() -> None:
    assert same_version({"a": 0, "b": 2}, {"b": 2})
    assert not same_version({"a": 1, "b": 2}, {"b": 2})


def test_deltas_to_versions_that_are_not_newer_are_removed(tmp_path: Path) -> None:
    older = write_delta(tmp_path, delta({"a": 1, "b": 1}, {"a": 2, "b": 1}))
    same = write_delta(tmp_path, delta({"a": 2, "b": 1}, {"a": 3, "b": 4}))
    newer = write_delta(tmp_path, delta({"a": 3, "b": 4}, {"a": 4, "b": 4}))
    beside = write_delta(tmp_path, delta({"a": 2, "b": 1}, {"a": 2, "b": 9}))
    remove_old_deltas(tmp_path, {"a": 3, "b": 4})
    assert [file.exists() for file in (older, same, newer, beside)] == [False, False, True, True]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "format"])
def test_a_damaged_delta_is_removed_with_a_line_in_the_log(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_delta(tmp_path, delta({}, {"s": 1}))
    data = bytearray(file.read_bytes())
    match damage:
        case "cut":
            del data[-1]
        case "flipped":
            data[data.index(b"empty")] ^= 1
        case "empty":
            data.clear()
        case "format":
            data[3] = 99
    file.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert read_delta(file) is None
    assert "damaged delta file" in caplog.text
    assert not file.exists()
    assert read_delta(file) is None


def test_a_delta_that_cannot_be_read_is_removed_with_the_old_ones(tmp_path: Path) -> None:
    file = write_delta(tmp_path, delta({}, {"s": 5}))
    file.write_bytes(b"")
    remove_old_deltas(tmp_path, {"s": 1})
    assert not file.exists()


def test_files_of_writers_that_died_are_removed_after_an_hour(tmp_path: Path) -> None:
    write_delta(tmp_path, delta({}, {"s": 5}))
    old, young = delta_folder(tmp_path) / "a.1.new", delta_folder(tmp_path) / "b.2.new"
    for file in (old, young):
        file.touch()
    os.utime(old, (0, 0))
    remove_old_deltas(tmp_path, {})
    assert (old.exists(), young.exists()) == (False, True)
    assert delta_chain(tmp_path, {}, {"s": 5}) is not None
