"""Files that cannot be trusted are discarded with a line in the log, and the state is rebuilt."""

import logging
import os
from pathlib import Path

import lmdb
import msgspec
import pytest

from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.disk import environment as environments
from kaspar.streams.stores.disk import opened
from kaspar.streams.stores.disk.boot_mark import BootMark
from kaspar.streams.stores.disk.environment import StateDamaged, boot_mark, folder
from kaspar.streams.stores.disk.opened import close_environment, opened_environment
from tests.unit.streams.stores.disk.test_ensure import COUNTS, NAMES, Partition


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    partition = Partition(tmp_path / "3", COUNTS, NAMES)
    partition.batch(a=1, b=2)
    assert partition.contents() == {"a": 1, "b": 2}
    return partition


def data_file(partition: Partition) -> Path:
    return folder(partition.directory) / "data.mdb"


def forget_mark(partition: Partition, text: str) -> None:
    (partition.directory / "boot").write_text(text)


def test_a_closed_state_is_opened_again(partition: Partition) -> None:
    for sync in (True, False):
        close_environment(partition.directory, sync=sync)
        assert opened_environment(partition.directory) is None
        assert partition.contents() == {"a": 1, "b": 2}
    assert partition.changelog.read_from == []


def test_after_a_crash_of_the_machine_the_state_is_rebuilt(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.batch(c=3)
    close_environment(partition.directory, sync=False)
    forget_mark(partition, "another-boot")
    with caplog.at_level(logging.WARNING):
        assert partition.contents() == {"a": 1, "b": 2, "c": 3}
    assert "discarded the files of a partition's state" in caplog.text
    assert partition.changelog.read_from == [("counts", 0)]  # the delta file was not trusted, either


def test_a_state_that_was_closed_with_sync_survives_the_machine(partition: Partition) -> None:
    close_environment(partition.directory, sync=True)
    assert BootMark(partition.directory / "boot", "another-boot").is_trusted()
    assert partition.contents() == {"a": 1, "b": 2}
    assert partition.changelog.read_from == []


def test_a_write_after_the_sync_needs_another(partition: Partition) -> None:
    close_environment(partition.directory, sync=True)
    partition.batch(c=3)
    assert partition.contents() == {"a": 1, "b": 2, "c": 3}
    assert not BootMark(partition.directory / "boot", "another-boot").is_trusted()
    assert boot_mark(partition.directory).is_trusted()


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "gone"])
def test_damaged_files_are_discarded(partition: Partition, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    close_environment(partition.directory, sync=False)
    file = data_file(partition)
    match damage:
        case "truncated":
            os.truncate(file, 2 * 4096)
        case "garbage":
            file.write_bytes(b"garbage" * 4096)
        case "empty":
            file.write_bytes(b"")
        case "gone":
            file.unlink()
    with caplog.at_level(logging.WARNING):
        assert partition.contents() == {"a": 1, "b": 2}
    assert partition.changelog.read_from == [("counts", 0)]
    if damage in ("truncated", "garbage"):
        assert "discarded" in caplog.text


def test_files_that_cannot_be_opened_are_not_discarded(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise lmdb.DiskError("no space left on device")

    close_environment(partition.directory, sync=False)
    with monkeypatch.context() as patch:
        patch.setattr(lmdb, "open", full)
        with pytest.raises(StreamsError, match="no space left"):
            partition.ensure()
    assert partition.contents() == {"a": 1, "b": 2}
    assert partition.changelog.read_from == []


def test_a_partition_may_be_named_by_two_paths(partition: Partition, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(partition.directory)
    other = Partition(tmp_path / "link", *partition.specs)
    other.changelog = partition.changelog
    with partition.ensure():
        assert other.contents() == {"a": 1, "b": 2}
    assert partition.changelog.read_from == []


def test_not_all_environments_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MAX_OPEN", 3)
    partitions = [Partition(tmp_path / str(number), COUNTS, NAMES) for number in range(6)]
    with partitions[0].ensure(), partitions[1].ensure() as second:
        for partition in partitions[2:]:
            partition.ensure().close()
        partitions[4].ensure().close()
        partitions[2].ensure().close()
        is_open = [opened_environment(partition.directory) is not None for partition in partitions]
        assert is_open == [True, True, True, False, False, False]
        assert second.snapshot("counts").get(b"a") is None


def test_a_state_may_be_closed_twice(partition: Partition) -> None:
    state = partition.ensure()
    state.close()
    state.close()
    environment = opened_environment(partition.directory)
    assert environment is not None
    assert environment.users == 0


def test_damage_that_a_task_finds_leads_to_a_rebuild(partition: Partition) -> None:
    environment = opened_environment(partition.directory)
    assert environment is not None
    assert isinstance(environment.on_damage(lmdb.CorruptedError("bad page")), StateDamaged)
    assert opened_environment(partition.directory) is None
    assert partition.contents() == {"a": 1, "b": 2}
    assert partition.changelog.read_from == [("counts", 0)]


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_state_that_cannot_be_decoded_is_rebuilt(
    partition: Partition, caplog: pytest.LogCaptureFixture, is_closed: bool
) -> None:
    environment = opened_environment(partition.directory)
    assert environment is not None
    with environment.writing() as transaction:
        transaction.put(environments._STATE_KEY, b"\xc1")
    if is_closed:
        close_environment(partition.directory, sync=False)
    with caplog.at_level(logging.WARNING):
        assert partition.contents() == {"a": 1, "b": 2}
    assert "rebuilt" in caplog.text
    assert partition.changelog.read_from == [("counts", 0)]


def test_a_newer_format_is_refused_with_a_sentence(partition: Partition) -> None:
    environment = opened_environment(partition.directory)
    assert environment is not None
    with environment.writing() as transaction:
        transaction.put(environments._FORMAT_KEY, msgspec.msgpack.encode(2))
    close_environment(partition.directory, sync=False)
    for _ in range(2):
        with pytest.raises(StreamsError, match="has format 2, but this version of Kaspar supports formats up to 1"):
            partition.ensure()
    assert data_file(partition).exists()
