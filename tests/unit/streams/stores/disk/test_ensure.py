"""How a partition comes to the version that a task wants: what LMDB has, delta files, or the changelogs."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.records import Record
from kaspar.streams import serdes
from kaspar.streams.stores import kinds
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.changelog import meta_header
from kaspar.streams.stores.disk.deltas import Delta, delta_folder, delta_of, write_delta
from kaspar.streams.stores.disk.ensure import ensure
from kaspar.streams.stores.disk.environment import folder
from kaspar.streams.stores.disk.opened import close_environment
from kaspar.streams.stores.disk.partition_state import PartitionState
from kaspar.streams.stores.disk.size import size_on_disk
from kaspar.streams.stores.spec import StoreSpec
from tests.unit.streams.stores.disk.changelog_in_memory import ChangelogInMemory
from tests.unit.streams.stores.store_task import task_with

COUNTS = StoreSpec("counts", kinds.TIMESTAMPED_KEY_VALUE, serdes.text(), serdes.long())
NAMES = StoreSpec("names", kinds.KEY_VALUE, serdes.text(), serdes.text())
WINDOWS = StoreSpec("windows", kinds.WINDOW, serdes.text(), serdes.text(), retention_ms=240_000, window_size_ms=10)


class Partition:
    """A partition and its changelogs, and a task for each batch."""

    def __init__(self, directory: Path, *specs: StoreSpec) -> None:
        self.directory = directory
        self.specs = specs
        self.changelog = ChangelogInMemory()

    def ensure(self, wanted: dict[str, int] | None = None) -> PartitionState:
        wanted = self.changelog.ends(self.specs) if wanted is None else wanted
        return ensure(self.directory, 3, self.specs, wanted, self.changelog)

    def batch(self, *, write: bool = True, **counts: int) -> Delta:
        """Put these values into the first store."""
        with self.ensure() as state:
            task = task_with(dict(state.meta))
            stores = {spec.name: OverlayStore(state.snapshot(spec.name)) for spec in self.specs}
            typed = {spec.name: spec.open(stores[spec.name], task) for spec in self.specs}
            for key, count in counts.items():
                typed[self.specs[0].name].put(key, (count, count))
            typed[self.specs[0].name].flush()
            meta, parent = {**task.meta(), "task": max(counts.values())}, self.changelog.ends(self.specs)
            self.changelog.write(self.specs, stores, meta)
            delta = delta_of(parent, self.changelog.ends(self.specs), meta, stores)
        if write:
            write_delta(self.directory, delta)
        return delta

    def contents(self, wanted: dict[str, int] | None = None) -> dict[str, int]:
        with self.ensure(wanted) as state:
            store = self.specs[0].open(OverlayStore(state.snapshot(self.specs[0].name)), task_with(dict(state.meta)))
            return {key: found[0] for key, found in store.all()}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "3", COUNTS, NAMES)


def test_a_new_partition_is_empty(partition: Partition) -> None:
    with partition.ensure() as state:
        assert dict(state.ends) == {}
        assert dict(state.meta) == {}
        assert list(state.snapshot("counts").range(None, None)) == []
        assert state.snapshot("counts").get(b"a") is None
        assert state.snapshot("counts").approximate_num_entries() == 0
    assert partition.changelog.read_from == []


def test_the_next_batch_applies_the_delta_of_the_last(partition: Partition) -> None:
    partition.batch(a=1, b=2)
    partition.batch(a=3, c=4)
    assert partition.contents() == {"a": 3, "b": 2, "c": 4}
    assert partition.changelog.read_from == []
    with partition.ensure() as state:
        assert dict(state.ends) == {"counts": 4, "names": 0}
        assert state.meta["task"] == 4


def test_a_version_that_is_there_is_used_without_the_lock(partition: Partition) -> None:
    partition.batch(a=1)
    with partition.ensure() as one, partition.ensure() as other:
        assert one.ends == other.ends == {"counts": 1, "names": 0}


def test_a_chain_of_deltas_is_applied(partition: Partition) -> None:
    with partition.ensure():
        pass
    other = Partition(partition.directory.parent / "elsewhere", *partition.specs)
    other.changelog = partition.changelog
    for delta in (other.batch(a=1, b=1), other.batch(a=2, c=2), other.batch(a=3)):
        write_delta(partition.directory, delta)
    assert partition.contents() == {"a": 3, "b": 1, "c": 2}
    assert partition.changelog.read_from == []


def test_without_a_delta_the_changelog_is_read_from_the_present_version(partition: Partition) -> None:
    partition.batch(a=1, b=2)
    assert partition.contents() == {"a": 1, "b": 2}
    partition.batch(write=False, a=5, c=6, d=7, e=8)
    assert partition.contents() == {"a": 5, "b": 2, "c": 6, "d": 7, "e": 8}
    assert partition.changelog.read_from == [("counts", 2)]
    with partition.ensure() as state:
        assert state.meta["task"] == 8


def test_a_delta_of_an_attempt_that_lost_is_not_applied(partition: Partition) -> None:
    partition.batch(a=1)
    assert partition.contents() == {"a": 1}
    lost = partition.batch(a=99)  # its changelog record is aborted
    partition.changelog.records["counts"].pop()
    partition.changelog.records["counts"].append(partition.changelog.records["counts"][0]._replace(offset=2))
    assert lost.versions.ends == {"counts": 2, "names": 0}
    assert partition.contents({"counts": 3, "names": 0}) == {"a": 1}
    assert partition.changelog.read_from == [("counts", 1)]


def test_a_state_that_is_ahead_is_rebuilt_from_the_beginning(partition: Partition) -> None:
    partition.batch(a=1)
    ends = partition.changelog.ends(partition.specs)
    partition.batch(a=2, b=3)
    assert partition.contents() == {"a": 2, "b": 3}
    assert partition.contents(ends) == {"a": 1}
    assert partition.changelog.read_from == [("counts", 0)]
    with partition.ensure(ends) as state:
        assert state.meta["task"] == 1
    assert partition.contents() == {"a": 2, "b": 3}


def test_a_task_keeps_its_version_while_the_next_is_applied(partition: Partition) -> None:
    partition.batch(a=1)
    with partition.ensure() as before:
        partition.batch(a=2)
        with partition.ensure() as after:
            old, new = before.snapshot("counts"), after.snapshot("counts")
            assert old.get(b"a") == bytes(7) + b"\x01" + bytes(7) + b"\x01"
            assert new.get(b"a") == bytes(7) + b"\x02" + bytes(7) + b"\x02"


def test_old_deltas_are_removed_once_they_are_applied(partition: Partition) -> None:
    for number in range(4):
        partition.batch(a=number)
    assert partition.contents() == {"a": 3}
    assert list(delta_folder(partition.directory).iterdir()) == []


def test_a_crash_while_the_changelog_is_read_loses_nothing(partition: Partition) -> None:
    for number in range(10):
        partition.changelog.append("counts", f"k{number % 9}".encode(), number.to_bytes(8))
    whole_read = partition.changelog.read

    class Crash(Exception):
        pass

    def read(*range_of_offsets: object) -> object:
        chunks = whole_read(*range_of_offsets)  # type: ignore[arg-type]
        yield next(chunks)
        yield next(chunks)
        raise Crash

    partition.changelog.read = read  # type: ignore[method-assign, assignment]
    with pytest.raises(Crash):
        partition.ensure()
    partition.changelog.read = whole_read  # type: ignore[method-assign]
    partition.changelog.read_from.clear()
    assert partition.contents() == {**{f"k{number}": number for number in range(9)}, "k0": 9}
    assert partition.changelog.read_from == [("counts", 6)]


def test_a_compacted_changelog_is_read(partition: Partition) -> None:
    for number in range(5):
        partition.batch(write=False, a=number, b=2 * number)
    partition.changelog.compact("counts")
    assert len(partition.changelog.records["counts"]) == 2
    assert partition.contents() == {"a": 4, "b": 8}


def test_a_changelog_that_lost_records_after_the_present_version_is_read_from_its_beginning(
    partition: Partition,
) -> None:
    partition.batch(a=1, b=2)
    assert partition.contents() == {"a": 1, "b": 2}
    partition.batch(write=False, b=3, c=4)
    partition.changelog.records["counts"] = partition.changelog.records["counts"][2:]
    partition.changelog.first_offsets["counts"] = 3
    assert partition.contents() == {"b": 3, "c": 4}
    assert partition.changelog.read_from == [("counts", 2), ("counts", 0)]


def test_a_state_of_yesterday_is_rebuilt_since_tombstones_may_be_gone(partition: Partition) -> None:
    partition.batch(a=1, b=2)
    assert partition.contents() == {"a": 1, "b": 2}
    partition.changelog.append("counts", b"a", None)
    partition.changelog.append("counts", b"c", bytes(7) + b"\x07", 7)
    partition.changelog.compact("counts")
    os.utime(folder(partition.directory) / "data.mdb", (0, 0))
    assert partition.contents() == {"b": 2, "c": 7}
    assert partition.changelog.read_from == [("counts", 0)]


def test_tombstones_delete(partition: Partition) -> None:
    partition.changelog.append("counts", b"a", bytes(8), 1)
    partition.changelog.append("counts", b"b", bytes(8), 1)
    partition.changelog.append("counts", b"a", None, 2)
    assert partition.contents() == {"b": 0}
    partition.changelog.append("counts", b"b", None, 2)
    assert partition.contents() == {}


def test_another_layout_is_rebuilt(tmp_path: Path) -> None:
    plain = Partition(tmp_path, NAMES)
    plain.changelog.append("names", b"a", bytes(8), 7)
    with plain.ensure() as state:
        assert state.snapshot("names").get(b"a") == bytes(8)
    timestamped = Partition(tmp_path, StoreSpec("names", kinds.TIMESTAMPED_KEY_VALUE, serdes.text(), serdes.long()))
    timestamped.changelog = plain.changelog
    with timestamped.ensure() as state:
        assert state.snapshot("names").get(b"a") == bytes(7) + b"\x07" + bytes(8)


def test_windows_that_expired_are_not_restored(tmp_path: Path) -> None:
    partition = Partition(tmp_path, WINDOWS)
    for time in (10, 150_000, 400_000):
        key, _, _ = WINDOWS.to_changelog(WINDOWS.from_changelog(b"a" + time.to_bytes(8) + bytes(4), b"v", 0)[0], b"v")
        partition.changelog.append("windows", key, b"v")
    with partition.ensure() as state:
        assert state.meta == {"store.windows": 400_000}
        starts = [int.from_bytes(key[9:17]) for key, _ in state.snapshot("windows").range(None, None)]
        assert starts == [150_000, 400_000]


def test_the_largest_meta_of_all_records_is_restored(partition: Partition) -> None:
    for meta in ({"task": 5, "x": 1}, {"task": 3, "y": 2}):
        partition.changelog.append("names", b"k", b"v")
        last = partition.changelog.records["names"].pop()
        partition.changelog.records["names"].append(last._replace(headers=(("other", None), meta_header(meta))))
    partition.changelog.append("names", b"k", b"v")
    last = partition.changelog.records["names"].pop()
    partition.changelog.records["names"].append(last._replace(headers=(("kaspar.meta", b"\xc1"),)))
    with partition.ensure() as state:
        assert state.meta == {"task": 5, "x": 1, "y": 2}


def test_a_store_without_a_changelog_lives_in_deltas_and_is_empty_without_them(tmp_path: Path) -> None:
    cache = StoreSpec("cache", kinds.KEY_VALUE, serdes.text(), serdes.text(), is_logged=False)
    specs = (NAMES, cache)
    changelog = ChangelogInMemory()
    with ensure(tmp_path, 0, specs, {"names": 0, "cache": 0}, changelog) as state:
        stores = {spec.name: OverlayStore(state.snapshot(spec.name)) for spec in specs}
    stores["names"].put(b"n", b"1")
    stores["cache"].put(b"c", b"1")
    changelog.append("names", b"n", b"1")
    write_delta(tmp_path, delta_of({"names": 0, "cache": 0}, {"names": 1, "cache": 1}, {}, stores))
    with ensure(tmp_path, 0, specs, {"names": 1, "cache": 1}, changelog) as state:
        assert state.snapshot("cache").get(b"c") == b"1"
    changelog.append("names", b"n", b"2")
    with ensure(tmp_path, 0, specs, {"names": 2, "cache": 2}, changelog) as state:
        assert state.snapshot("cache").get(b"c") is None
        assert state.snapshot("names").get(b"n") == b"2"
        assert state.ends == {"names": 2, "cache": 2}


def test_a_store_without_a_changelog_and_without_a_version_is_taken_as_it_is(tmp_path: Path) -> None:
    cache = StoreSpec("cache", kinds.KEY_VALUE, serdes.text(), serdes.text(), is_logged=False)
    changelog = ChangelogInMemory()
    with ensure(tmp_path, 0, [cache], {}, changelog) as state:
        stores = {"cache": OverlayStore(state.snapshot("cache"))}
    stores["cache"].put(b"c", b"1")
    write_delta(tmp_path, delta_of({"cache": 0}, {"cache": 5}, {}, stores))
    for wanted in ({"cache": 5}, {}):
        with ensure(tmp_path, 0, [cache], wanted, changelog) as state:
            assert state.snapshot("cache").get(b"c") == b"1"


def test_a_store_without_a_changelog_and_without_a_version_stays_while_others_change(tmp_path: Path) -> None:
    """A driver that was just started knows no version of it until a batch changes it."""
    cache = StoreSpec("cache", kinds.KEY_VALUE, serdes.text(), serdes.text(), is_logged=False)
    specs = (NAMES, cache)
    changelog = ChangelogInMemory()
    with ensure(tmp_path, 0, specs, {}, changelog) as state:
        stores = {spec.name: OverlayStore(state.snapshot(spec.name)) for spec in specs}
    stores["cache"].put(b"c", b"1")
    write_delta(tmp_path, delta_of({"names": 0, "cache": 0}, {"names": 0, "cache": 5}, {}, stores))
    ensure(tmp_path, 0, specs, {"cache": 5}, changelog).close()

    names = OverlayStore(None)
    names.put(b"n", b"1")
    changelog.append("names", b"n", b"1")
    write_delta(tmp_path, delta_of({"names": 0, "cache": 5}, {"names": 1, "cache": 5}, {}, {"names": names}))
    with ensure(tmp_path, 0, specs, {"names": 1}, changelog) as state:
        assert state.snapshot("cache").get(b"c") == b"1"
        assert state.snapshot("names").get(b"n") == b"1"
    assert changelog.read_from == [], "the delta was found"

    changelog.append("names", b"n", b"2")
    with ensure(tmp_path, 0, specs, {"names": 2}, changelog) as state:
        assert state.snapshot("cache").get(b"c") == b"1"
        assert state.ends == {"names": 2, "cache": 5}


def test_a_logged_store_without_a_version_is_wanted_empty(partition: Partition) -> None:
    partition.batch(a=1)
    assert partition.contents() == {"a": 1}
    assert partition.contents({}) == {}


def test_a_later_version_is_as_good_for_those_who_only_read(partition: Partition) -> None:
    partition.batch(a=1)
    earlier = partition.changelog.ends(partition.specs)
    partition.batch(a=2)
    partition.ensure().close()
    for _ in range(2):
        with ensure(partition.directory, 3, partition.specs, earlier, partition.changelog, or_later=True) as state:
            assert state.ends == partition.changelog.ends(partition.specs)
        close_environment(partition.directory, sync=False)
    assert partition.changelog.read_from == []


def test_a_reader_may_find_nothing_to_restore(partition: Partition) -> None:
    partition.changelog.append("counts", b"a", bytes(8))
    read = partition.changelog.read

    def with_empty_chunks(store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        yield []
        yield from read(store, partition, from_offset, to_offset)
        yield []

    partition.changelog.read = with_empty_chunks  # type: ignore[method-assign]
    assert partition.contents() == {"a": 0}


def test_a_failing_changelog_is_an_error_of_the_task(partition: Partition) -> None:
    def read(*_: object) -> object:
        raise KasparError("the broker is away")

    partition.batch(write=False, a=1)
    partition.changelog.read = read  # type: ignore[method-assign, assignment]
    with pytest.raises(KasparError, match="broker is away"):
        partition.ensure()


def test_the_size_on_disk_is_that_of_the_files(partition: Partition) -> None:
    assert size_on_disk(partition.directory) == 0
    partition.batch(a=1)
    with partition.ensure():
        assert 8192 <= size_on_disk(partition.directory) < 1 << 20
